import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DatabaseSync } from 'node:sqlite';

/**
 * Runs `body` while it holds an exclusive lock on a file, across processes. The lock is SQLite's
 * file lock, because Node.js has no flock. The kernel releases it when its holder dies, so there
 * are no stale locks.
 * @param waiting - called once, if another process holds the lock
 */
export async function withLock<T>(
  path: string,
  body: () => Promise<T>,
  waiting?: () => void,
): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  // Not a static import: jest does not resolve built-in modules that require the `node:` prefix.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    for (let told = false; !tryLock(database); told = true) {
      if (!told) waiting?.();
      await delay(50);
    }
    return await body();
  } finally {
    database.close();
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (/database is locked|database is busy/.test(String(error))) return false;
    throw error;
  }
}
