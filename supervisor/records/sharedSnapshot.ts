import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { sharedDirError, type SharedDirEntry } from '../../core/domain/sharedDir.ts';

/**
 * Error for contents of SHARED_DIR that cannot be passed on. Its message is for the author of the
 * job.
 */
export class SharedDirError extends Error {
  override readonly name = 'SharedDirError';
}

/** Fixes for errors of the file system, by their code. */
const READ_FIXES: Readonly<Record<string, string>> = {
  EACCES:
    "let its owner read it (chmod u+r), and others if the step's container may be killed (chmod o+r)",
};

/** Content of a snapshot, by file name. */
type Snapshot = Record<string, { readonly mode: number; readonly base64: string }>;

/**
 * Creates a snapshot of SHARED_DIR as one object, even if the directory is empty, because its files
 * may have been removed on purpose. Call it when no process writes there anymore.
 * @throws SharedDirError if the contents are too large, or an entry is not a file or cannot be read
 */
export async function createSnapshot(folder: string): Promise<Uint8Array> {
  const names = await withReadError('.', namesIn(folder));
  const entries: SharedDirEntry[] = [];
  for (const name of names) entries.push(await withReadError(name, entryOf(folder, name)));
  const fault = sharedDirError(entries);
  if (fault !== undefined) throw new SharedDirError(fault);
  const files: [name: string, file: Snapshot[string]][] = [];
  // One after the other: there may be more empty files than this process may open.
  for (const name of names.toSorted())
    files.push([name, await withReadError(name, fileOf(join(folder, name)))]);
  return Buffer.from(JSON.stringify(Object.fromEntries(files) satisfies Snapshot));
}

/** @throws SharedDirError if a name is not UTF-8: a snapshot is JSON, which cannot contain it */
async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { encoding: 'buffer' });
  return names.map((bytes) => {
    const name = bytes.toString();
    if (Buffer.from(name).equals(bytes)) return name;
    throw new SharedDirError(
      `SHARED_DIR: names of files must be UTF-8, got ${JSON.stringify(name)}; rename the file`,
    );
  });
}

async function entryOf(folder: string, name: string): Promise<SharedDirEntry> {
  const found = await lstat(join(folder, name));
  const folderOrOther = found.isDirectory() ? 'folder' : 'other';
  return { name, kind: found.isFile() ? 'file' : folderOrOther, bytes: found.size };
}

/**
 * Turns an error of the file system into a SharedDirError. A retry does not help, because no
 * process writes to the directory anymore.
 */
async function withReadError<T>(name: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    const what = name === '.' ? 'the directory' : JSON.stringify(name);
    throw new SharedDirError(
      `SHARED_DIR: failed to read ${what} (${code}); ${READ_FIXES[code ?? ''] ?? 'remove or replace it'}`,
      { cause: error },
    );
  }
}

/** Reads a file without following links, which could point to files of the uploader. */
async function fileOf(path: string): Promise<Snapshot[string]> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { mode } = await file.stat();
    return { mode: mode & 0o777, base64: (await file.readFile()).toString('base64') };
  } finally {
    await file.close();
  }
}

/**
 * Restores the files of a snapshot into an empty directory.
 *
 * @throws Error if the snapshot is invalid, or a file exists already
 */
export async function restoreSnapshot(snapshot: Uint8Array, folder: string): Promise<void> {
  for (const [name, { mode, base64 }] of Object.entries(parseSnapshot(snapshot))) {
    const file = await open(join(folder, name), 'wx', mode);
    try {
      await file.writeFile(Buffer.from(base64, 'base64'));
      // Independent of the umask of this process.
      await file.chmod(mode);
    } finally {
      await file.close();
    }
  }
}

/**
 * Parses a snapshot that another process has written.
 * @throws Error if it is not a snapshot
 * @throws SharedDirError if it contains more than SHARED_DIR may hold
 */
export function parseSnapshot(bytes: Uint8Array): Snapshot {
  const files = JSON.parse(Buffer.from(bytes).toString()) as Snapshot;
  const entries = Object.entries(files).map(([name, { mode, base64 }]): SharedDirEntry => {
    if (name.includes('/') || name === '.' || name === '..')
      throw new Error(`invalid file name in the snapshot of SHARED_DIR: ${JSON.stringify(name)}`);
    if (!Number.isInteger(mode) || typeof base64 !== 'string')
      throw new Error(`invalid entry in the snapshot of SHARED_DIR: ${JSON.stringify(name)}`);
    return { name, kind: 'file', bytes: Buffer.byteLength(base64, 'base64') };
  });
  const fault = sharedDirError(entries);
  if (fault !== undefined) throw new SharedDirError(fault);
  return files;
}
