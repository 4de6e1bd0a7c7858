import { open, type FileHandle } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogStreamOptions } from '../../ports/compute.ts';
import { hasCode } from './atomicFile.ts';

/** Interval between two reads of a log that is followed (ms). */
const POLL_MS = 100;
const CHUNK_BYTES = 65_536;
const NEWLINE = 0x0a;

/**
 * Opens a log file. A file that is deleted while it is read is read to its end.
 * @param hasEnded - returns whether nothing more is written to the file
 * @returns `undefined` if the file does not exist
 */
export async function logStream(
  path: string,
  { follow = false, tailLines, signal }: LogStreamOptions,
  hasEnded: () => Promise<boolean>,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  return read(file, tailLines, signal, async () => !follow || (await hasEnded()));
}

async function* read(
  file: FileHandle,
  tailLines: number | undefined,
  signal: AbortSignal,
  isComplete: () => Promise<boolean>,
): AsyncGenerator<Uint8Array> {
  try {
    let position = tailLines === undefined ? 0 : await tailOffset(file, tailLines);
    let complete = false;
    while (!signal.aborted) {
      const { bytesRead, buffer } = await file.read({
        buffer: Buffer.alloc(CHUNK_BYTES),
        position,
      });
      position += bytesRead;
      if (bytesRead > 0) yield buffer.subarray(0, bytesRead);
      else if (complete) return;
      // Read the file again after the end, for the last lines.
      else if (!(complete = await isComplete())) await pause(signal);
    }
  } finally {
    await file.close();
  }
}

const pause = async (signal: AbortSignal): Promise<void> =>
  await delay(POLL_MS, undefined, { signal }).catch(() => undefined);

/**
 * Returns the offset of the last `lines` lines of the file (bytes). A newline at the end of the
 * file ends a line.
 */
async function tailOffset(file: FileHandle, lines: number): Promise<number> {
  const { size } = await file.stat();
  if (lines === 0) return size;
  let found = 0;
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const buffer = Buffer.alloc(end - start);
    await file.read(buffer, 0, buffer.length, start);
    for (let at = buffer.length - 1; at >= 0; at -= 1)
      if (buffer[at] === NEWLINE && start + at < size - 1 && ++found === lines)
        return start + at + 1;
    end = start;
  }
  return 0;
}
