import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SHARED_SNAPSHOTS } from '../../core/domain/sharedDir.ts';
import type { Pending } from '../process/pending.ts';
import { writeEndRecord } from './marker.ts';
import { createSnapshot, restoreSnapshot } from './sharedSnapshot.ts';

/** Folder that steps of a job hand on, and the folder of its snapshots. */
export interface SharedFolder {
  readonly dir: string;
  readonly snapshots: string;
}

/**
 * Puts what was left for the step into its folder, as the step's user, who owns the files then.
 * Without a snapshot there is nothing to do.
 * @throws Error that says what could not be restored
 */
export async function restoreShared({ dir, snapshots }: SharedFolder): Promise<void> {
  try {
    await restoreSnapshot(await readFile(join(snapshots, SHARED_SNAPSHOTS.before)), dir);
  } catch (error) {
    if (isMissing(error, join(snapshots, SHARED_SNAPSHOTS.before))) return;
    throw new Error(`failed to restore SHARED_DIR: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Takes a snapshot of the folder, which the step's user may read. To be called when nothing writes
 * there any more.
 * @throws SharedDirError if the folder has what cannot be handed on
 */
export async function takeShared(
  { dir, snapshots }: SharedFolder,
  pending: Pending,
): Promise<void> {
  const snapshot = await pending.track(createSnapshot(dir));
  const path = join(snapshots, SHARED_SNAPSHOTS.after);
  await writeEndRecord(path, Buffer.from(snapshot).toString(), pending);
}

function isMissing(error: unknown, path: string): boolean {
  const { code, path: of } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' && of === path;
}
