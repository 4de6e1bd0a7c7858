import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a new directory for the supervisor. The kubelet gives every container a /dev/shm, also
 * with a read-only root file system or without /tmp. Jobs empty /tmp to free disk space.
 * @param parents - directories to try, in this order
 * @throws Error if no directory can be created
 */
export async function temporaryFolder(
  parents: readonly string[] = ['/dev/shm', tmpdir(), '/run'],
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
