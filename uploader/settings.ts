import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createDirectoryStore } from '../activities/artifacts/directoryStore.ts';
import type { ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { secretVariants } from '../core/domain/secretMasker.ts';
import { omitUndefined } from '../core/domain/omitUndefined.ts';
import { parseDuration } from '../core/domain/duration.ts';
import type { UploaderOptions } from './uploader.ts';

/** Environment variables of the uploader, set by the creator of the pod. */
export const UPLOADER_ENV = {
  /**
   * Artifact store: a directory that is mounted into this container and into none of the step's.
   */
  directory: 'HOLDFAST_UPLOAD_DIRECTORY',
  /** Bucket, as an alternative to a directory. */
  bucket: 'HOLDFAST_UPLOAD_BUCKET',
  folder: 'HOLDFAST_UPLOAD_FOLDER',
  endpoint: 'HOLDFAST_UPLOAD_ENDPOINT',
  region: 'HOLDFAST_UPLOAD_REGION',
  /** `true`: the bucket name is part of the URL path. */
  pathStyle: 'HOLDFAST_UPLOAD_PATH_STYLE',
  /** Directory with the credentials for the bucket. @default the SDK finds the credentials */
  key: 'HOLDFAST_UPLOAD_KEY',
  /** Directory of the step in the store. */
  to: 'HOLDFAST_UPLOAD_TO',
  /** Key of the step's snapshot of SHARED_DIR. */
  sharedKey: 'HOLDFAST_UPLOAD_SHARED_KEY',
  /**
   * Keys of the snapshots that SHARED_DIR may be restored from, best first, separated by spaces.
   */
  sources: 'HOLDFAST_UPLOAD_SHARED_SOURCES',
  /**
   * Directory in which the step's supervisor keeps its start record, its marker and the snapshots
   * of SHARED_DIR.
   */
  records: 'HOLDFAST_UPLOAD_RECORDS',
  /** Directory with the step's Secrets: each file in it, at any depth, is one. Optional. */
  secrets: 'HOLDFAST_UPLOAD_SECRETS',
  /** Maximum time for the upload, from the step's end. */
  timeout: 'HOLDFAST_UPLOAD_TIMEOUT',
  probePort: 'HOLDFAST_PROBE_PORT',
  artifactDir: 'ARTIFACT_DIR',
  sharedDir: 'SHARED_DIR',
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the options of the uploader.
 *
 * @throws Error that names a missing or invalid variable
 */
export async function uploaderOptions(env: Environment): Promise<UploaderOptions> {
  const port = Number(required(env, 'probePort'));
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${UPLOADER_ENV.probePort} must be a port`);
  const timeoutMs = parseDuration(required(env, 'timeout'));
  if (timeoutMs === undefined)
    throw new Error(`${UPLOADER_ENV.timeout} must be a duration such as 10m`);
  const secrets = env[UPLOADER_ENV.secrets];
  return {
    records: required(env, 'records'),
    artifactDir: required(env, 'artifactDir'),
    sharedDir: required(env, 'sharedDir'),
    port,
    store: await createStore(env),
    destination: required(env, 'to'),
    sharedKey: required(env, 'sharedKey'),
    secretVariants: secrets === undefined ? [] : await readSecretVariants(secrets),
    timeoutMs,
  };
}

/**
 * Reads the options of `uploader restore`.
 *
 * @throws Error that names a missing variable
 */
export async function restoreOptions(
  env: Environment,
): Promise<{ records: string; store: ArtifactStore; sources: readonly string[] }> {
  return {
    records: required(env, 'records'),
    store: await createStore(env),
    sources: (env[UPLOADER_ENV.sources] ?? '').split(' ').filter((key) => key !== ''),
  };
}

async function createStore(env: Environment): Promise<ArtifactStore> {
  if ((env[UPLOADER_ENV.bucket] ?? '') === '')
    return createDirectoryStore(required(env, 'directory'));
  const { createBucketStore } = await import('../activities/artifacts/bucketStore.ts');
  return createBucketStore({
    bucket: required(env, 'bucket'),
    region: required(env, 'region'),
    pathStyle: env[UPLOADER_ENV.pathStyle] === 'true',
    ...omitUndefined({
      folder: env[UPLOADER_ENV.folder],
      endpoint: env[UPLOADER_ENV.endpoint],
      keyDirectory: env[UPLOADER_ENV.key],
    }),
  });
}

function required(env: Environment, name: keyof typeof UPLOADER_ENV): string {
  const value = env[UPLOADER_ENV[name]];
  if (value === undefined || value === '') throw new Error(`${UPLOADER_ENV[name]} is missing`);
  return value;
}

/**
 * Reads the secrets in a directory. In a mounted Secret the files are links into a directory with a
 * time in its name. Such directories (`..2026_…`, `..data`) are skipped.
 */
async function readSecretVariants(folder: string): Promise<string[]> {
  const paths = (await readdir(folder))
    .filter((name) => !name.startsWith('..'))
    .map((name) => join(folder, name));
  const forms = await Promise.all(
    paths.map(async (path) =>
      (await stat(path)).isDirectory()
        ? await readSecretVariants(path)
        : secretVariants(await readFile(path, 'utf8')),
    ),
  );
  return [...new Set(forms.flat())];
}
