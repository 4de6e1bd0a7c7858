import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a new directory for the supervisor. An image may have no /tmp, or a read-only root file
 * system; the kubelet gives every container a /dev/shm.
 * @param parents - directories to try, in this order
 * @throws Error if no directory can be created
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
