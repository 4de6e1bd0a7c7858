import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SHARED_SNAPSHOTS } from '../../core/domain/sharedDir.ts';
import type { Pending } from '../process/pending.ts';
import { writeEndRecord } from './marker.ts';
import { createSnapshot, restoreSnapshot } from './sharedSnapshot.ts';

/** Directory that steps of a job pass on, and the directory of its snapshots. */
export interface SharedFolder {
  readonly dir: string;
  readonly snapshots: string;
}

/**
 * Restores the files that previous steps left for this step, as the step's user, who then owns the
 * files. Does nothing without a snapshot.
 * @throws Error that describes what could not be restored
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
 * Takes a snapshot of the directory, which the step's user may read. Call it when no process writes
 * there any more.
 * @throws SharedDirError if the directory contains something that cannot be passed on
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
