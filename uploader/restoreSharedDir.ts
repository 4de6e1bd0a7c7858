import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { SHARED_SNAPSHOTS } from '../core/domain/sharedDir.ts';

/**
 * Gets the files that previous steps left for a step, before it starts. The step's supervisor puts
 * the files into SHARED_DIR, as the step's user.
 * @param records - directory that the supervisor reads
 * @param sources - keys of snapshots, best first (core/domain/artifactLayout.ts); only the first
 * that exists is used
 * @returns the key of that snapshot; `undefined` if none exists
 * @throws Error if the store cannot be read
 */
export async function restoreSharedDir(
  records: string,
  store: ArtifactStore,
  sources: readonly string[],
): Promise<string | undefined> {
  const path = join(records, SHARED_SNAPSHOTS.before);
  // Kubernetes may run this init container again in the same pod, for example after a reboot of the
  // node. Remove the file instead of overwriting it: the step may have replaced it with a link.
  await rm(path, { recursive: true, force: true });
  for (const key of sources) {
    const snapshot = await store.get(key);
    if (snapshot === undefined) continue;
    await writeFile(path, snapshot, { flag: 'wx', mode: 0o644 });
    return key;
  }
  return undefined;
}
