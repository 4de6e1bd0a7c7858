import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { LabRecord } from './component.ts';
import type { ComponentName } from './options.ts';
import type { ProcessIdentity } from './process.ts';

export const DEFAULT_STATE_DIR = '.holdfast/lab';

export const lockPath = (dir: string): string => join(dir, 'lock');
export const logPath = (dir: string, component: ComponentName): string =>
  join(dir, 'logs', `${component}.log`);
const recordPath = (dir: string): string => join(dir, 'lab.json');
const processPath = (dir: string, component: ComponentName): string =>
  join(dir, 'processes', `${component}.json`);

/** Absolute, symbolic links resolved, so that one lab has one name. Creates nothing. */
export async function labFolder(stateDir: string | undefined): Promise<string> {
  const path = resolve(stateDir ?? DEFAULT_STATE_DIR);
  return realpath(path).catch(() => path);
}

export async function createLabFolder(dir: string): Promise<string> {
  for (const folder of ['logs', 'processes']) await mkdir(join(dir, folder), { recursive: true });
  return realpath(dir);
}

export const readRecord = (dir: string): Promise<LabRecord | undefined> =>
  readJson<LabRecord>(recordPath(dir));

const writing = new Map<string, Promise<void>>();

/**
 * Writes the record. Writes are serialized and read the record first, because components that start
 * concurrently write it too.
 */
export async function writeRecord(dir: string, record: LabRecord): Promise<void> {
  const written = (writing.get(dir) ?? Promise.resolve()).then(
    async () => await writeJson(recordPath(dir), record),
  );
  writing.set(
    dir,
    written.catch(() => undefined),
  );
  await written;
}

export function newRecord(dir: string): LabRecord {
  return {
    id: createHash('sha256').update(dir).digest('hex').slice(0, 8),
    temporal: 'none',
    kubernetes: false,
    nodes: 'none',
    ports: {},
    tokens: { admin: randomBytes(24).toString('hex'), node: randomBytes(24).toString('hex') },
  };
}

export const readProcess = (
  dir: string,
  component: ComponentName,
): Promise<ProcessIdentity | undefined> => readJson<ProcessIdentity>(processPath(dir, component));
export const writeProcess = (
  dir: string,
  component: ComponentName,
  identity: ProcessIdentity,
): Promise<void> => writeJson(processPath(dir, component), identity);
export const forgetProcess = (dir: string, component: ComponentName): Promise<void> =>
  rm(processPath(dir, component), { force: true });

/** Returns the content, or `undefined` if the file does not exist. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  return text === undefined ? undefined : (JSON.parse(text) as T);
}

/**
 * Writes a file atomically: a reader sees the old or the new content. Only the owner can read it,
 * because the record contains tokens.
 */
async function writeJson(path: string, value: unknown): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  await writeFile(draft, JSON.stringify(value, undefined, 2), { mode: 0o600 });
  await rename(draft, path);
}
