import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { EndRecord } from '../signals/actions.ts';
import type { JobRecord } from '../ciRunner/jobState.ts';
import type { Pending } from '../process/pending.ts';

/**
 * Content of the marker file and the termination message. Times are in ISO 8601. `startedAt` is
 * null if the command never started.
 */
export interface EndRecordFile extends EndRecord {
  readonly startedAt: string | null;
  readonly endedAt: string;
  /** Record of the last job, for CI runners only. */
  readonly job?: JobRecord;
  /** Whether the log file lacks lines, as on a full disk. */
  readonly logTruncated?: true;
}

/**
 * Maximum size of a termination message (bytes). The kubelet keeps 4 KiB, shared by the pod's
 * containers; the supervisor's message is about a tenth of this maximum.
 */
export const MAX_MESSAGE_BYTES = 2048;
/** Maximum length of an error's text (characters), so that the record can be read completely. */
const MAX_ERROR = 300;

/** Returns the line that both contain. */
export function markerText({
  exitCode,
  signal,
  reason,
  startedAt,
  endedAt,
  job,
  logTruncated,
  error,
}: EndRecordFile): string {
  return `${JSON.stringify({ exitCode, signal, reason, startedAt, endedAt, job, logTruncated, error: error?.slice(0, MAX_ERROR) })}\n`;
}

/**
 * Writes the file atomically, and flushes it to disk before it becomes visible, so that readers can
 * rely on it.
 *
 * @throws Error if it cannot be written
 */
export async function writeEndRecord(path: string, text: string, pending: Pending): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  await pending.track(
    (async () => {
      try {
        const file = await open(temporary, 'w', 0o644);
        try {
          await file.writeFile(text);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
      const folder = await open(dirname(path), 'r');
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
    })(),
  );
}

/**
 * Writes the termination message in place: the kubelet mounts this single file into the container,
 * so it cannot be replaced by a rename.
 *
 * @throws Error if it cannot be written
 */
export async function writeTerminationMessage(
  path: string,
  text: string,
  pending: Pending,
): Promise<void> {
  await pending.track(writeFile(path, text.slice(0, MAX_MESSAGE_BYTES)));
}
