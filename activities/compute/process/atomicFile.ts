/**
 * Files that other processes read while they are written: they are complete or do not exist. This
 * module uses only Node built-ins, because the wrapper, which runs outside of the worker, uses it
 * too.
 */
import { randomUUID } from 'node:crypto';
import { link, open, readFile, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Readable by the owner only, because a record may be next to a secret, and a log may contain the
 * output of a job.
 */
const PRIVATE = 0o600;

/**
 * Replaces a file atomically (temporary file, fsync, rename). After a crash at any moment it has
 * the old content or the new one.
 */
export async function replaceFile(file: string, content: string): Promise<void> {
  const temporary = await writeTemporary(file, content);
  await rename(temporary, file);
  await syncFolder(file);
}

/**
 * Creates a file with its full content, unless it exists. Of several concurrent calls, exactly one
 * returns `true`. link(2) rejects an existing name and, unlike O_EXCL, never exposes an empty file.
 */
export async function createFile(file: string, content: string): Promise<boolean> {
  const temporary = await writeTemporary(file, content);
  try {
    await link(temporary, file);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
  await syncFolder(file);
  return true;
}

/**
 * Returns the content of a JSON file that this module has written.
 * @returns `undefined` if the file does not exist
 * @throws Error if it is not valid JSON
 */
export async function readJson<T>(file: string): Promise<T | undefined> {
  let content: string;
  try {
    content = await readFile(file, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
  try {
    return JSON.parse(content) as T;
  } catch {
    // Without the message of the parser, which quotes the content, because the content may be
    // secret.
    throw new Error(`${file} is damaged: not valid JSON`);
  }
}

/** Whether an error of the operating system has one of these codes, such as `ENOENT`. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  // Checked by shape: `instanceof Error` is false for errors of another realm, such as those of
  // Node under a test runner.
  const code: unknown =
    typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && codes.includes(code);
}

async function writeTemporary(file: string, content: string): Promise<string> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  const handle = await open(temporary, 'wx', PRIVATE);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return temporary;
}

/** Makes the new name durable, not only the content. */
async function syncFolder(file: string): Promise<void> {
  const folder = await open(dirname(file), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
