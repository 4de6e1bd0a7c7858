/**
 * Rules of SHARED_DIR, the directory with small files that the steps of a job pass on to later
 * steps. When the container of a step has ended, its uploader stores a snapshot of the directory.
 * The next step starts with the latest snapshot. Pure.
 *
 * Snapshots are used instead of a volume claim, because a claim of a lost node cannot be mounted
 * elsewhere until that node is back, deleted or fenced. `post` would then not run within the job's
 * grace period. With snapshots, a lost node costs only what its step wrote. An installation without
 * an artifact store may use a claim for each job.
 */

/**
 * Names of the snapshots in the records directory of a step. The supervisor reads `before` and
 * writes `after` as the step's user, who owns the files of SHARED_DIR. Helper containers copy
 * `before` from the artifact store and `after` to it.
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
  const invalid = entries.find(({ kind }) => kind !== 'file');
  if (invalid !== undefined)
    return `SHARED_DIR: must contain only regular files, got ${invalid.kind === 'folder' ? `the directory ${JSON.stringify(invalid.name)}; pack it into one file (tar)` : `${JSON.stringify(invalid.name)}; replace a link with a copy of its target`}`;
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= SHARED_DIR_MAX_BYTES) return undefined;
  const largest = entries.reduce((max, entry) => (entry.bytes > max.bytes ? entry : max));
  return `SHARED_DIR: must be at most ${SHARED_DIR_MAX_BYTES} bytes, got ${total}, of which ${JSON.stringify(largest.name)} has ${largest.bytes}; move large files to ARTIFACT_DIR`;
}
