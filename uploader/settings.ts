import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createDirectoryStore } from '../activities/artifacts/directoryStore.ts';
import type { ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { formsOf } from '../core/domain/censor.ts';
import { parseDuration } from '../core/domain/duration.ts';
import type { UploaderOptions } from './uploader.ts';

/** Set by who makes the pod. */
export const UPLOADER_ENV = {
  /** Folder of the store, mounted into this container and into none of the step's. */
  directory: 'HOLDFAST_UPLOAD_DIRECTORY',
  /** The step's folder in the store. */
  to: 'HOLDFAST_UPLOAD_TO',
  /** Key of its snapshot of SHARED_DIR. */
  sharedKey: 'HOLDFAST_UPLOAD_SHARED_KEY',
  /** Keys of the snapshots that SHARED_DIR may come from, the best first, with spaces between them. */
  sources: 'HOLDFAST_UPLOAD_SHARED_SOURCES',
  /** Where the step's supervisor keeps its start note and its marker. */
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
  const port = Number(said(env, 'probePort'));
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`${UPLOADER_ENV.probePort} is no port`);
  const timeoutMs = parseDuration(said(env, 'timeout'));
  if (timeoutMs === undefined) throw new Error(`${UPLOADER_ENV.timeout} is no duration such as 10m`);
  const secrets = env[UPLOADER_ENV.secrets];
  return {
    records: said(env, 'records'),
    artifactDir: said(env, 'artifactDir'),
    sharedDir: said(env, 'sharedDir'),
    port,
    store: storeOf(env),
    to: said(env, 'to'),
    sharedKey: said(env, 'sharedKey'),
    forms: secrets === undefined ? [] : await formsIn(secrets),
    timeoutMs,
  };
}

/** @throws Error that names a variable which is missing */
export function restoreOptions(env: Environment): { folder: string; store: ArtifactStore; sources: readonly string[] } {
  return { folder: said(env, 'sharedDir'), store: storeOf(env), sources: (env[UPLOADER_ENV.sources] ?? '').split(' ').filter((key) => key !== '') };
}

const storeOf = (env: Environment): ArtifactStore => createDirectoryStore(said(env, 'directory'));

function said(env: Environment, name: keyof typeof UPLOADER_ENV): string {
  const value = env[UPLOADER_ENV[name]];
  if (value === undefined || value === '') throw new Error(`${UPLOADER_ENV[name]} is missing`);
  return value;
}

/** A mounted Secret has its files behind links, beside a folder with a time in its name, which is theirs: `..2026_…`, `..data`. */
async function formsIn(folder: string): Promise<string[]> {
  const paths = (await readdir(folder)).filter((name) => !name.startsWith('..')).map((name) => join(folder, name));
  const forms = await Promise.all(paths.map(async (path) => ((await stat(path)).isDirectory() ? await formsIn(path) : formsOf(await readFile(path, 'utf8')))));
  return [...new Set(forms.flat())];
}
