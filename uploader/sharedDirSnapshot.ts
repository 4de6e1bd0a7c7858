import { constants, existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { ARTIFACT_NAMES } from '../core/domain/artifactLayout.ts';
import { SHARED_SNAPSHOTS } from '../core/domain/sharedDir.ts';
import { createSnapshot, parseSnapshot } from '../supervisor/records/sharedSnapshot.ts';

/**
 * Maximum size of a file that is read as a snapshot (bytes): the maximum content of SHARED_DIR in
 * base64, and its names.
 */
const MAX_SNAPSHOT_BYTES = 8 * 1_048_576;

/**
 * Returns the files that a step passes on: the snapshot that its supervisor took as the step's user
 * or, if its command never started, the files that were left for it. A supervisor that was killed
 * has taken no snapshot: then the directory itself is read, as far as the uploader has permission.
 * @throws SharedDirError if the contents are too large, or an entry cannot be passed on
 */
export async function sharedDirSnapshot(records: string, sharedDir: string): Promise<Uint8Array> {
  const isStarted = existsSync(join(records, ARTIFACT_NAMES.started));
  return (
    (await readSnapshot(join(records, SHARED_SNAPSHOTS.after))) ??
    (isStarted ? undefined : await readSnapshot(join(records, SHARED_SNAPSHOTS.before))) ??
    (await createSnapshot(sharedDir))
  );
}

/** Reads a snapshot. The step may write there as well, so an invalid file counts as missing. */
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
