import { constants, existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { ARTIFACT_NAMES } from '../core/domain/artifactLayout.ts';
import { SHARED_SNAPSHOTS } from '../core/domain/sharedDir.ts';
import { createSnapshot, parseSnapshot } from '../supervisor/records/sharedSnapshot.ts';

/** Largest file that is read as a snapshot (bytes): what SHARED_DIR may hold as base64, and its names. */
const MAX_SNAPSHOT_BYTES = 8 * 1_048_576;

/**
 * Returns what a step hands on: the snapshot that its supervisor took as the step's user, or, of a
 * step whose command never started, what was left for it. A supervisor that was killed has taken
 * none: then the folder itself, as far as the uploader may read it.
 * @throws SharedDirError when there is too much of it, or something that cannot be handed on
 */
export async function sharedDirSnapshot(records: string, sharedDir: string): Promise<Uint8Array> {
  const isStarted = existsSync(join(records, ARTIFACT_NAMES.started));
  return (
    (await readSnapshot(join(records, SHARED_SNAPSHOTS.after))) ??
    (isStarted ? undefined : await readSnapshot(join(records, SHARED_SNAPSHOTS.before))) ??
    (await createSnapshot(sharedDir))
  );
}

/** The step may write there, too: what is no snapshot is none. */
async function readSnapshot(path: string): Promise<Uint8Array | undefined> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      if ((await file.stat()).size > MAX_SNAPSHOT_BYTES) return undefined;
      const bytes = await file.readFile();
      parseSnapshot(bytes);
      return bytes;
    } finally {
      await file.close();
    }
  } catch {
    return undefined;
  }
}
