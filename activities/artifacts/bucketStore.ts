/** Loaded where it is needed only: the SDK takes a fifth of a second, and 30 MB. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { GetObjectCommand, NoSuchKey, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { ArtifactStore } from './artifactStore.ts';
import { BUCKET_KEY_FILES, type BucketConfig } from './bucketConfig.ts';

/** A server that takes nothing or says nothing for so long is given up, in ms; the SDK then tries again. */
const SILENCE_MS = 30_000;
const CONNECT_MS = 5_000;
/** What S3 takes as a part, in bytes: so much of a file is held in memory. A file has at most 10,000 parts. */
const PART_BYTES = 5 * 1024 ** 2;

/**
 * Store in an S3 bucket. S3 shows an object only once all of it has arrived. Without a
 * `keyDirectory` the SDK finds the credentials: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`,
 * a profile, or the cloud's identity of this machine or pod.
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
    // Servers other than Amazon's may refuse checksums that they do not know: https://github.com/aws/aws-sdk-js-v3/issues/6810
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const root = folder.replaceAll(/^\/+|\/+$/g, '');
  const keyOf = (key: string): string => (root === '' ? key : `${root}/${key}`);
  return {
    async put(key, content) {
      const params = { Bucket: bucket, Key: keyOf(key), Body: Readable.from(content) };
      // Parts of one file go one by one: so much of each file is in memory, whatever its size.
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
        throw told(`get ${Key} from`, bucket, error);
      }
    },
  };
}

/** Provider of the key in a mounted Secret. */
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
    throw told(what, bucket, error);
  }
}

/** The SDK's own say neither what was asked for nor, of a server that is away, anything. */
function told(what: string, bucket: string, error: unknown): Error {
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
