import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createDirectoryStore } from '../activities/artifacts/directoryStore.ts';
import type { ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { secretVariants } from '../core/domain/secretMasker.ts';
import { omitUndefined } from '../core/domain/omitUndefined.ts';
import { parseDuration } from '../core/domain/duration.ts';
import type { UploaderOptions } from './uploader.ts';

/** Set by who makes the pod. */
export const UPLOADER_ENV = {
  /** The store: a folder, mounted into this container and into none of the step's. */
  directory: 'HOLDFAST_UPLOAD_DIRECTORY',
  /** Or a bucket. */
  bucket: 'HOLDFAST_UPLOAD_BUCKET',
  folder: 'HOLDFAST_UPLOAD_FOLDER',
  endpoint: 'HOLDFAST_UPLOAD_ENDPOINT',
  region: 'HOLDFAST_UPLOAD_REGION',
  /** `true`: the bucket is named in the path. */
  pathStyle: 'HOLDFAST_UPLOAD_PATH_STYLE',
  /** Folder with the files of the bucket's key. Default: the SDK looks for credentials. */
  key: 'HOLDFAST_UPLOAD_KEY',
  /** The step's folder in the store. */
  to: 'HOLDFAST_UPLOAD_TO',
  /** Key of its snapshot of SHARED_DIR. */
  sharedKey: 'HOLDFAST_UPLOAD_SHARED_KEY',
  /** Keys of the snapshots that SHARED_DIR may come from, the best first, with spaces between them. */
  sources: 'HOLDFAST_UPLOAD_SHARED_SOURCES',
  /** Where the step's supervisor keeps its start note, its marker and the snapshots of SHARED_DIR. */
  records: 'HOLDFAST_UPLOAD_RECORDS',
  /** Folder with the step's Secrets: each file in it, at whatever depth, is one. Optional. */
  secrets: 'HOLDFAST_UPLOAD_SECRETS',
  /** How long storing is tried, from the step's end. */
  timeout: 'HOLDFAST_UPLOAD_TIMEOUT',
  probePort: 'HOLDFAST_PROBE_PORT',
  artifactDir: 'ARTIFACT_DIR',
  sharedDir: 'SHARED_DIR',
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws Error that names a variable which is missing or wrong */
export async function uploaderOptions(env: Environment): Promise<UploaderOptions> {
  const port = Number(required(env, 'probePort'));
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${UPLOADER_ENV.probePort} is no port`);
  const timeoutMs = parseDuration(required(env, 'timeout'));
  if (timeoutMs === undefined)
    throw new Error(`${UPLOADER_ENV.timeout} is no duration such as 10m`);
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

/** @throws Error that names a variable which is missing */
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

/** A mounted Secret has its files behind links, beside a folder with a time in its name, which is theirs: `..2026_…`, `..data`. */
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
