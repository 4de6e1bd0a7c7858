import type { ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { restoreSnapshot } from './sharedSnapshot.ts';

/**
 * Before a step: what the steps before it left for it.
 * @param sources - keys of snapshots, the best first (core/domain/artifactLayout.ts); the first that is there is taken, and no other
 * @returns that key; `undefined`: none is there
 * @throws Error when the store cannot tell, or the folder is not empty
 */
export async function restoreSharedDir(
  folder: string,
  store: ArtifactStore,
  sources: readonly string[],
): Promise<string | undefined> {
  for (const key of sources) {
    const snapshot = await store.get(key);
    if (snapshot === undefined) continue;
    await restoreSnapshot(snapshot, folder);
    return key;
  }
  return undefined;
}
