/** S3 store. Import this module only when it is needed: loading the SDK takes 0.2 s and 30 MB. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { GetObjectCommand, NoSuchKey, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { ArtifactStore } from './artifactStore.ts';
import { BUCKET_KEY_FILES, type BucketConfig } from './bucketConfig.ts';

/** Maximum time without any traffic before a request fails and the SDK retries it (ms). */
const SILENCE_MS = 30_000;
const CONNECT_MS = 5_000;
/**
 * Size of a part of a multipart upload (bytes), which is held in memory. S3 accepts at most 10,000
 * parts per file.
 */
const PART_BYTES = 5 * 1024 ** 2;

/**
 * Creates a store in an S3 bucket. S3 shows an object only after all of it has arrived. Without a
 * `keyDirectory` the SDK finds the credentials: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, a
 * profile, or the cloud's identity of this machine or pod.
 */
export function createBucketStore({
  bucket,
  folder = '',
  endpoint,
  region,
  pathStyle,
  keyDirectory,
}: BucketConfig): ArtifactStore {
  const client = new S3Client({
    region,
    forcePathStyle: pathStyle,
    ...omitUndefined({
      endpoint,
      credentials: keyDirectory === undefined ? undefined : keyIn(keyDirectory),
    }),
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: SILENCE_MS,
      throwOnRequestTimeout: true,
    },
    // Servers other than Amazon's may reject checksums that they do not know:
    // https://github.com/aws/aws-sdk-js-v3/issues/6810
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const root = folder.replaceAll(/^\/+|\/+$/g, '');
  const keyOf = (key: string): string => (root === '' ? key : `${root}/${key}`);
  return {
    async put(key, content) {
      const params = { Bucket: bucket, Key: keyOf(key), Body: Readable.from(content) };
      // Upload the parts of a file one after the other, so that each file needs the memory of one
      // part.
      await said(
        `put ${params.Key} into`,
        bucket,
        new Upload({ client, params, partSize: PART_BYTES, queueSize: 1 }).done(),
      );
    },

    async get(key) {
      const Key = keyOf(key);
      try {
        const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key }));
        return (await Body?.transformToByteArray()) ?? new Uint8Array();
      } catch (error) {
        if (error instanceof NoSuchKey) return undefined;
        throw requestError(`get ${Key} from`, bucket, error);
      }
    },
  };
}

/** Returns a credential provider that reads the key from a mounted Secret. */
function keyIn(directory: string): () => Promise<{ accessKeyId: string; secretAccessKey: string }> {
  return async () => {
    const [accessKeyId = '', secretAccessKey = ''] = await Promise.all(
      BUCKET_KEY_FILES.map(async (name) => (await readFile(join(directory, name), 'utf8')).trim()),
    );
    return { accessKeyId, secretAccessKey };
  };
}

async function said<T>(what: string, bucket: string, doing: Promise<T>): Promise<T> {
  try {
    return await doing;
  } catch (error) {
    throw requestError(what, bucket, error);
  }
}

/**
 * Returns an error that names the request. Errors of the SDK do not, and are empty if the server
 * does not answer.
 */
function requestError(what: string, bucket: string, error: unknown): Error {
  const {
    name = 'Error',
    message = '',
    code = '',
  } = error as { name?: string; message?: string; code?: string };
  return new Error(
    `Could not ${what} the bucket ${bucket}: ${[...new Set([name === 'Error' ? '' : name, code, message])].filter((part) => part !== '').join(': ')}`,
    { cause: error },
  );
}
