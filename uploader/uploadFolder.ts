import { constants } from 'node:fs';
import { open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import pMap from 'p-map';
import { ObjectRejectedError, type ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { isJUnitReport, ARTIFACT_NAMES } from '../core/domain/artifactLayout.ts';
import { SecretMasker } from '../core/domain/secretMasker.ts';

/** Files of one directory that are stored at the same time. */
const CONCURRENCY = 8;
/** Flags for opening files. If a pipe has replaced a file, the open must not block. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Errors of files and directories that cannot be read, even with retries. */
const UNREADABLE: ReadonlySet<string | undefined> = new Set([
  'EACCES',
  'ELOOP',
  'ENOENT',
  'ENOTDIR',
  'ENXIO',
]);

/** Target of the upload of a directory. */
export interface UploadTarget {
  readonly store: ArtifactStore;
  /** Directory of the step in the store, with a trailing slash. */
  readonly destination: string;
  /** Texts to mask (core/domain/secretMasker.ts). */
  readonly secretVariants: readonly string[];
}

/**
 * Stores the files of a step's ARTIFACT_DIR. Its JUnit reports are stored a second time, all in one
 * directory.
 *
 * Each file is opened relative to an open directory, and no link is followed. So files that the
 * step replaces during the upload cannot lead to files of the uploader, such as the store's key.
 * @returns the paths that were skipped because they are not files or not readable, or the store
 * never accepts them; "." if the directory itself is not readable
 * @throws Error the first error of the store; other files may have been stored
 */
export async function uploadDirectory(directory: string, target: UploadTarget): Promise<string[]> {
  const handle = await skipUnreadable(open(directory, READ | constants.O_DIRECTORY));
  if (handle === undefined) return ['.'];
  try {
    return (await uploadOpenDirectory(handle, '', target)).toSorted();
  } finally {
    await handle.close();
  }
}

/**
 * Uploads the files of an open directory.
 * @param prefix - path of this directory within ARTIFACT_DIR, with a trailing slash
 */
async function uploadOpenDirectory(
  directory: FileHandle,
  prefix: string,
  target: UploadTarget,
): Promise<string[]> {
  // The kernel resolves this link to the open directory itself, wherever its name points now.
  const at = `/proc/self/fd/${directory.fd}`;
  const entries = await readdir(at, { withFileTypes: true });
  const directories = entries.filter((entry) => entry.isDirectory());
  const skipped = await pMap(
    entries.filter((entry) => !entry.isDirectory()),
    async ({ name }) =>
      (await uploadArtifact(join(at, name), `${prefix}${name}`, target)) ? [] : [prefix + name],
    { concurrency: CONCURRENCY },
  );
  for (const { name } of directories) {
    const child = await skipUnreadable(open(join(at, name), READ | constants.O_DIRECTORY));
    try {
      skipped.push(
        child === undefined
          ? [prefix + name]
          : await uploadOpenDirectory(child, `${prefix}${name}/`, target),
      );
    } finally {
      await child?.close();
    }
  }
  return skipped.flat();
}

async function uploadArtifact(
  file: string,
  path: string,
  { store, destination, secretVariants }: UploadTarget,
): Promise<boolean> {
  const keys = [
    `${destination}${ARTIFACT_NAMES.artifacts}${path}`,
    ...(isJUnitReport(path) ? [`${destination}${ARTIFACT_NAMES.junit}${path}`] : []),
  ];
  for (const key of keys)
    if (!(await skipRejected(uploadFile(file, store, key, secretVariants)))) return false;
  return true;
}

/**
 * Returns false instead of an error for a file that the store never accepts, so that it does not
 * block the others.
 */
async function skipRejected(upload: Promise<boolean>): Promise<boolean> {
  try {
    return await upload;
  } catch (error) {
    if (error instanceof ObjectRejectedError) return false;
    throw error;
  }
}

/**
 * Stores one file with its secrets masked.
 * @returns false if it is not a file or cannot be read
 * @throws ObjectRejectedError if the store never accepts it
 * @throws Error if it cannot be stored
 */
export async function uploadFile(
  path: string,
  store: ArtifactStore,
  key: string,
  secretVariants: readonly string[],
): Promise<boolean> {
  const file = await skipUnreadable(open(path, READ));
  if (file === undefined) return false;
  try {
    if (!(await file.stat()).isFile()) return false;
    const content = file.createReadStream({ autoClose: false });
    await store.put(key, maskSecrets(content, new SecretMasker(secretVariants)));
    return true;
  } finally {
    await file.close();
  }
}

async function skipUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (UNREADABLE.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}

async function* maskSecrets(
  pieces: AsyncIterable<Uint8Array>,
  censor: SecretMasker,
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) yield censor.push(piece);
  yield censor.end();
}
