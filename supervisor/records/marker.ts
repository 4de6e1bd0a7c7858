import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { EndRecord } from '../signals/actions.ts';
import type { JobRecord } from '../ciRunner/jobState.ts';
import type { Pending } from '../process/pending.ts';

/** What the marker file and the termination message say. Times ISO 8601; `startedAt` null: it never started. */
export interface EndRecordFile extends EndRecord {
  readonly startedAt: string | null;
  readonly endedAt: string;
  /** Only of a CI runner. */
  readonly job?: JobRecord;
  /** Whether the log file lacks lines, as on a full disk. */
  readonly logTruncated?: true;
}

/** The kubelet keeps 4 KiB of a termination message, shared by the pod's containers; ours is a tenth of this, in bytes. */
export const MAX_MESSAGE_BYTES = 2048;
/** What of an error's text is kept: the record is to be read whole, in characters. */
const MAX_ERROR = 300;

/** The one line that both carry. */
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

/** Writes the file whole or not at all, and on the disk when it is there: whoever sees it can rely on it. @throws Error */
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

/** Writes the termination message in place: the kubelet mounts that one file into the container, so it cannot be renamed over. @throws Error */
export async function writeTerminationMessage(
  path: string,
  text: string,
  pending: Pending,
): Promise<void> {
  await pending.track(writeFile(path, text.slice(0, MAX_MESSAGE_BYTES)));
}
