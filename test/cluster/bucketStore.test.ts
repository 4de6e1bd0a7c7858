/** The bucket as a store, on a real server that speaks S3. */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectRejectedError } from '../../activities/artifacts/artifactStore.ts';
import type { BucketConfig } from '../../activities/artifacts/bucketConfig.ts';
import { createBucketStore } from '../../activities/artifacts/bucketStore.ts';
import { artifactStoreContract } from '../support/artifactStoreContract.ts';
import { freePort } from '../../tools/lab/ports.ts';
import { createBucket, type TestBucket } from '../support/buckets.ts';
import { describeWithLab } from '../support/lab.ts';

await describeWithLab('a bucket as artifact store', { s3: true }, ({ s3 }) => {
  const { endpoint, secretAccessKey } = s3!;
  const before = { ...process.env };
  let bucket: TestBucket;
  let place: BucketConfig;

  beforeAll(async () => {
    bucket = await createBucket(s3!);
    place = { bucket: bucket.name, endpoint, region: 'us-east-1', pathStyle: true };
    Object.assign(process.env, bucket.env);
  });
  afterAll(() => {
    process.env = before;
  });

  artifactStoreContract(async () => createBucketStore({ ...place, folder: randomUUID() }));

  test('a multipart upload stores every byte; an aborted one stores nothing', async () => {
    const store = createBucketStore(place);
    const content = randomBytes(11 * 1024 ** 2);
    const pieces = Array.from({ length: 11 }, (_, index) =>
      content.subarray(index * 1024 ** 2, (index + 1) * 1024 ** 2),
    );
    await store.put('parts/whole', pieces);
    expect(Buffer.from((await store.get('parts/whole')) ?? []).equals(content)).toBe(true);
    const breaking = (async function* () {
      for (const piece of pieces) yield await Promise.resolve(piece);
      throw new Error('the source broke off');
    })();
    await expect(store.put('parts/broken', breaking)).rejects.toThrow('the source broke off');
    expect(await store.get('parts/broken')).toBeUndefined();
    expect(bucket.parts()).toEqual([]);
  });

  test.each([
    'run/a b.txt',
    'run/ä/ö.txt',
    'run/%2E%2E/x',
    'run/"quoted" & <more>.txt',
    `run/${'n'.repeat(200)}`,
  ])('%j is a key', async (key) => {
    const store = createBucketStore(place);
    await store.put(key, [Buffer.from(key)]);
    expect(Buffer.from((await store.get(key)) ?? []).toString()).toBe(key);
  });

  test('a key that is too long for the server is rejected, and a retry fails as well', async () => {
    const key = `run/${'n'.repeat(300)}`;
    await expect(createBucketStore(place).put(key, [Buffer.from('x')])).rejects.toThrow(
      ObjectRejectedError,
    );
  });

  test.each(['ci', 'ci/', '/ci'])('is stored in its folder %j', async (name) => {
    await createBucketStore({ ...place, folder: name }).put(
      `artifacts/${encodeURIComponent(name)}`,
      [Buffer.from('x')],
    );
    expect(bucket.texts('ci/artifacts')).toHaveProperty([encodeURIComponent(name)]);
  });

  test('a missing bucket, a wrong key and an unreachable server cause errors, not the result that nothing is stored', async () => {
    const nowhere = createBucketStore({ ...place, bucket: 'no-such-bucket' });
    await expect(nowhere.get('a')).rejects.toThrow(
      /get a from the bucket no-such-bucket: NoSuchBucket/,
    );
    await expect(nowhere.put('a', [])).rejects.toThrow(
      /put a into the bucket no-such-bucket: NoSuchBucket/,
    );
    process.env['AWS_SECRET_ACCESS_KEY'] = 'wrong';
    try {
      await expect(createBucketStore(place).get('a')).rejects.toThrow(/SignatureDoesNotMatch/);
    } finally {
      process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
    }
    await expect(
      createBucketStore({ ...place, endpoint: `http://127.0.0.1:${await freePort()}` }).get('a'),
    ).rejects.toThrow(/ECONNREFUSED/);
  });
});
