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

/** Content of a snapshot, by file name. */
type Snapshot = Record<string, { readonly mode: number; readonly base64: string }>;

/**
 * Creates a snapshot of SHARED_DIR as one object, even if the directory is empty, because its files
 * may have been removed on purpose. Call it when no process writes there anymore.
 * @throws SharedDirError if the contents are too large, or an entry is not a file
 */
export async function createSnapshot(folder: string): Promise<Uint8Array> {
  const names = await readdir(folder);
  const entries = await Promise.all(names.map(async (name) => await entryOf(folder, name)));
  const fault = sharedDirError(entries);
  if (fault !== undefined) throw new SharedDirError(fault);
  const files = await Promise.all(
    names
      .toSorted()
      .map(async (name) => [name, await withReadError(name, fileOf(join(folder, name)))] as const),
  );
  return Buffer.from(JSON.stringify(Object.fromEntries(files) satisfies Snapshot));
}

async function entryOf(folder: string, name: string): Promise<SharedDirEntry> {
  const found = await lstat(join(folder, name));
  const folderOrOther = found.isDirectory() ? 'folder' : 'other';
  return { name, kind: found.isFile() ? 'file' : folderOrOther, bytes: found.size };
}

async function withReadError<T>(name: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    throw new SharedDirError(
      `SHARED_DIR holds ${JSON.stringify(name)}, which cannot be read: let its owner read it (chmod u+r), and others where the step's container was killed (chmod o+r)`,
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
