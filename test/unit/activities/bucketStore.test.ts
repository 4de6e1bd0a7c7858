/** Which answers of an S3 server are about one object for ever. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  ObjectRejectedError,
  type ArtifactStore,
} from '../../../activities/artifacts/artifactStore.ts';
import { BUCKET_KEY_FILES } from '../../../activities/artifacts/bucketConfig.ts';
import { createBucketStore } from '../../../activities/artifacts/bucketStore.ts';

describe('a bucket as artifact store', () => {
  let server: Server;
  let keyDirectory: string;
  let answer: { readonly status: number; readonly code: string };
  let store: ArtifactStore;

  beforeAll(async () => {
    keyDirectory = await mkdtemp(join(tmpdir(), 'holdfast-bucket-'));
    for (const name of BUCKET_KEY_FILES) await writeFile(join(keyDirectory, name), 'key');
    server = createServer((request, response) => {
      request.resume().on('end', () => {
        response.writeHead(answer.status, { 'content-type': 'application/xml' });
        response.end(`<Error><Code>${answer.code}</Code><Message>no</Message></Error>`);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    store = createBucketStore({
      bucket: 'artifacts',
      region: 'us-east-1',
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      pathStyle: true,
      keyDirectory,
    });
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await rm(keyDirectory, { recursive: true });
  });

  const failure = async (content: readonly Uint8Array[]): Promise<unknown> =>
    await store.put('a/b', content).then(
      () => undefined,
      (error: unknown) => error,
    );

  test.each([
    [400, 'KeyTooLongError', true],
    [400, 'EntityTooLarge', true],
    [413, 'Content Too Large', true],
    [400, 'RequestTimeout', false],
    [400, 'ExpiredToken', false],
    [401, 'Unauthorized', false],
    [403, 'AccessDenied', false],
    [404, 'NoSuchBucket', false],
    [408, 'Request Timeout', false],
    [409, 'OperationAborted', false],
    [429, 'TooManyRequests', false],
    [501, 'NotImplemented', false],
  ])('%i %s: rejects the object for ever: %s', async (status, code, rejected) => {
    answer = { status, code };
    const error = await failure([Buffer.from('x')]);
    expect(error).toMatchObject({
      message: expect.stringMatching(/^Could not put a\/b into the bucket artifacts: /),
    });
    expect(error instanceof ObjectRejectedError).toBe(rejected);
  });

  test('a file of more than 10,000 parts is rejected', async () => {
    const huge = { byteLength: 10_000 * 5 * 1024 ** 2 + 1 } as Uint8Array;
    expect(await failure([huge])).toBeInstanceOf(ObjectRejectedError);
  });
});
