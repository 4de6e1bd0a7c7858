import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { SHARED_SNAPSHOTS } from '../core/domain/sharedDir.ts';

/**
 * Before a step: gets what the steps before it left for it. The step's supervisor puts the files
 * into SHARED_DIR, as the step's user.
 * @param records - folder that the supervisor reads
 * @param sources - keys of snapshots, the best first (core/domain/artifactLayout.ts); the first that is there is taken, and no other
 * @returns that key; `undefined`: none is there
 * @throws Error when the store cannot tell, or a snapshot is there already
 */
export async function restoreSharedDir(
  records: string,
  store: ArtifactStore,
  sources: readonly string[],
): Promise<string | undefined> {
  for (const key of sources) {
    const snapshot = await store.get(key);
    if (snapshot === undefined) continue;
    await writeFile(join(records, SHARED_SNAPSHOTS.before), snapshot, { flag: 'wx', mode: 0o644 });
    return key;
  }
  return undefined;
}
