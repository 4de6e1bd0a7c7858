/**
 * SHARED_DIR: the small files that the steps of a job leave for one another. When a step's container is over, its uploader puts a snapshot of them
 * into the store; the next step begins with the newest there is. Not a claim: after a lost node a claim may be mounted nowhere else until that node
 * is back, gone or fenced, and `post` would not run within the job's grace. So a lost node costs what its step wrote, and no more. Pure.
 */

/**
 * Files in the folder of a step's records with the content of SHARED_DIR. The supervisor writes and
 * reads them as the step's user, whose files it may read and own. The uploader moves them from and
 * to the store.
 */
export const SHARED_SNAPSHOTS = {
  before: 'shared-before.json',
  after: 'shared-after.json',
} as const;

/** Of all files together, in bytes. What is larger is an artifact. */
export const SHARED_DIR_MAX_BYTES = 1_048_576;

/** One thing in the folder, as it is there: a link is not followed. */
export interface SharedDirEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'other';
  readonly bytes: number;
}

/** What keeps these from the next step, with the fix; `undefined`: nothing does. */
export function sharedDirError(entries: readonly SharedDirEntry[]): string | undefined {
  const strange = entries.find(({ kind }) => kind !== 'file');
  if (strange !== undefined)
    return `SHARED_DIR holds flat files only, and ${JSON.stringify(strange.name)} is ${strange.kind === 'folder' ? 'a folder: make one file of it (tar)' : 'no file: put a copy of what it leads to there'}`;
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= SHARED_DIR_MAX_BYTES) return undefined;
  const biggest = entries.reduce((max, entry) => (entry.bytes > max.bytes ? entry : max));
  return `SHARED_DIR holds ${total} bytes, and may hold ${SHARED_DIR_MAX_BYTES}: put large files into ARTIFACT_DIR; the biggest is ${JSON.stringify(biggest.name)} with ${biggest.bytes}`;
}
