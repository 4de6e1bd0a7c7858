import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { S3Access } from '../../tools/lab/options.ts';

/** A bucket for one test on the lab's server. */
export interface TestBucket {
  readonly name: string;
  /** Environment of the AWS SDK for the server. */
  readonly env: { readonly AWS_ACCESS_KEY_ID: string; readonly AWS_SECRET_ACCESS_KEY: string };
  /** Returns the content of all objects under a key, by the rest of their keys. */
  texts(under?: string): Record<string, string>;
  /** Incomplete multipart uploads. */
  parts(): string[];
}

export async function createBucket({
  endpoint,
  accessKeyId,
  secretAccessKey,
  folder,
}: S3Access): Promise<TestBucket> {
  const name = `test-${randomUUID().slice(0, 8)}`;
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
  });
  await client.send(new CreateBucketCommand({ Bucket: name }));
  client.destroy();
  const root = join(folder, name);
  return {
    name,
    env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    texts: (under = '') =>
      Object.fromEntries(
        filesIn(join(root, under))
          .filter((path) => !path.startsWith('.sgwtmp/'))
          .map((path) => [path, readFileSync(join(root, under, path), 'utf8')]),
      ),
    parts: () => filesIn(join(root, '.sgwtmp', 'multipart')),
  };
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) =>
        join(parentPath, name).slice(folder.replace(/\/$/, '').length + 1),
      );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
