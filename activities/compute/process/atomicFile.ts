/**
 * Files that other processes read while they are written: they are there in full, or not at all. Only Node built-ins, because
 * the wrapper, which runs outside the worker, uses them too.
 */
import { randomUUID } from 'node:crypto';
import { link, open, readFile, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Only the owner may read: a record may sit beside a secret, and a log may hold what a job printed. */
const PRIVATE = 0o600;

/** Replaces `file` atomically: a crash at any moment leaves the old content or the new one (temporary file, fsync, rename). */
export async function replaceFile(file: string, content: string): Promise<void> {
  const temporary = await writeTemporary(file, content);
  await rename(temporary, file);
  await syncFolder(file);
}

/**
 * Creates `file` with its full content unless it is there already. Of several processes that race exactly one gets `true`:
 * link(2) refuses an existing name and, unlike O_EXCL, never shows an empty file.
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

/** The content of a JSON file that this folder's functions wrote; `undefined` when it is not there. */
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
    // Without the parser's message, which quotes the content: it may be a secret.
    throw new Error(`${file} is damaged: not valid JSON`);
  }
}

/** Whether an error of the operating system has one of these codes (`ENOENT`, …). */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  // By shape: `instanceof Error` is false for errors of another realm, such as Node's own under a test runner.
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

/** Makes the new name itself durable, not only the content. */
async function syncFolder(file: string): Promise<void> {
  const folder = await open(dirname(file), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
