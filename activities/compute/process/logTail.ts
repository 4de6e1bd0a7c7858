import { open } from 'node:fs/promises';
import { hasCode } from './atomicFile.ts';

/** Returns the last bytes of a file, or `undefined` if it does not exist. */
export async function logTail(path: string, maxBytes: number): Promise<string | undefined> {
  try {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const length = Math.min(size, maxBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.subarray(0, bytesRead).toString('utf8');
    } finally {
      await file.close();
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
