/**
 * SHARED_DIR: small files that the steps of a job pass on to later steps. When the container of a
 * step has ended, its uploader stores a snapshot of them. The next step starts with the latest
 * snapshot.
 *
 * With a store it is not a volume claim. After the loss of a node, a claim can be mounted nowhere
 * else until that node is back, deleted or fenced. `post` would then not run within the job's grace
 * period. With snapshots, a lost node costs only what its step wrote. An installation without a
 * store may still choose a claim of each job. Pure.
 */

/**
 * Files in the directory of a step's records with the content of SHARED_DIR. The supervisor writes and
 * reads them as the step's user, whose files it may read and own. The uploader moves them from and
 * to the store.
 */
export const SHARED_SNAPSHOTS = {
  before: 'shared-before.json',
  after: 'shared-after.json',
} as const;

/** Maximum size of all files together (bytes). Larger files are artifacts. */
export const SHARED_DIR_MAX_BYTES = 1_048_576;

/** One entry of the directory. Links are not followed. */
export interface SharedDirEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'other';
  readonly bytes: number;
}

/**
 * Returns why the files cannot be passed on to the next step, with the fix. Returns `undefined` if
 * they can.
 */
export function sharedDirError(entries: readonly SharedDirEntry[]): string | undefined {
  const strange = entries.find(({ kind }) => kind !== 'file');
  if (strange !== undefined)
    return `SHARED_DIR holds flat files only, and ${JSON.stringify(strange.name)} is ${strange.kind === 'folder' ? 'a folder; pack it into one file (tar)' : 'not a regular file; copy its target there'}`;
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= SHARED_DIR_MAX_BYTES) return undefined;
  const biggest = entries.reduce((max, entry) => (entry.bytes > max.bytes ? entry : max));
  return `SHARED_DIR holds ${total} bytes, and may hold ${SHARED_DIR_MAX_BYTES}: put large files into ARTIFACT_DIR; the biggest is ${JSON.stringify(biggest.name)} with ${biggest.bytes}`;
}
