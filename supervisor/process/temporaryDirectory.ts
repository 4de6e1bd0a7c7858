import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A new folder of our own. An image may have no /tmp, or a root file system that nobody may write to; the kubelet gives every
 * container a /dev/shm.
 * @throws Error when none can be made
 */
export async function temporaryFolder(
  parents: readonly string[] = [tmpdir(), '/dev/shm', '/run'],
): Promise<string> {
  const failures: string[] = [];
  for (const parent of parents) {
    try {
      return await mkdtemp(join(parent, 'holdfast-'));
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  throw new Error(
    `no folder for small files (${failures.join('; ')}): set HOLDFAST_RUN_DIR to one that may be written to`,
  );
}
