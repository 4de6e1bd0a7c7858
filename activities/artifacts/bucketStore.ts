/** S3 store. Import this module only when it is needed: loading the SDK takes 0.2 s and 30 MB. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { GetObjectCommand, NoSuchKey, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { ObjectRejectedError, type ArtifactStore } from './artifactStore.ts';
import { BUCKET_KEY_FILES, type BucketConfig } from './bucketConfig.ts';

/** Maximum time without any traffic before a request fails and the SDK retries it (ms). */
const SILENCE_MS = 30_000;
const CONNECT_MS = 5_000;
/**
 * Size of a part of a multipart upload (bytes), which is held in memory. S3 accepts at most 10,000
 * parts per file.
 */
const PART_BYTES = 5 * 1024 ** 2;
const MAX_OBJECT_BYTES = 10_000 * PART_BYTES;

/**
 * HTTP statuses of errors that are not about one object. They are about the credentials, the
 * bucket, a concurrent request, the connection or the request rate.
 */
const GENERAL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 408, 409, 429]);
/**
 * Errors with status 400 that are not about one object, or may not recur:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
 */
const GENERAL_ERRORS: ReadonlySet<string | undefined> = new Set([
  'AuthorizationHeaderMalformed',
  'BadDigest',
  'ExpiredToken',
  'IncompleteBody',
  'InvalidToken',
  'RequestTimeout',
  'TokenRefreshRequired',
]);

/**
 * Creates a store in an S3 bucket. An object becomes visible only after its upload is complete.
 * Without a `keyDirectory` the SDK finds the credentials: `AWS_ACCESS_KEY_ID` and
 * `AWS_SECRET_ACCESS_KEY`, a profile, or the cloud's identity of this machine or pod.
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
      const Body = Readable.from(limitSize(content));
      const params = { Bucket: bucket, Key: keyOf(key), Body };
      // Upload the parts of a file one after the other, so that each file needs the memory of one
      // part.
      const upload = new Upload({ client, params, partSize: PART_BYTES, queueSize: 1 });
      try {
        await upload.done();
      } catch (error) {
        const failure = requestError(`put ${params.Key} into`, bucket, error);
        if (!isRejection(error)) throw failure;
        throw new ObjectRejectedError(failure.message, { cause: error });
      }
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

async function* limitSize(
  content: Parameters<ArtifactStore['put']>[1],
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.byteLength;
    if (bytes > MAX_OBJECT_BYTES)
      throw new ObjectRejectedError(`file is larger than ${MAX_OBJECT_BYTES} bytes`);
    yield piece;
  }
}

/** Whether the server rejected this one object, so that a retry fails as well. */
function isRejection(error: unknown): boolean {
  if (error instanceof ObjectRejectedError) return true;
  const { name, $metadata } = error as {
    name?: string;
    $metadata?: { httpStatusCode?: number };
  };
  if (GENERAL_ERRORS.has(name)) return false;
  const status = $metadata?.httpStatusCode ?? 0;
  return status >= 400 && status < 500 && !GENERAL_STATUSES.has(status);
}

/**
 * Returns an error that names the request. Errors of the SDK do not name it, and have no message if
 * the server does not answer.
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
