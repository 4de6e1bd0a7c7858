/**
 * Storage for the last log lines of runners that did not succeed, according to HOLDFAST_POD_LOGS:
 * the log of the worker, or a folder.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { PodLogs } from '../../activities/ports.ts';
import type { HoldfastConfig } from '../settings/config.ts';

/** Creates the store for the last log lines of runners that did not succeed. */
export function createPodLogStore(
  { to, maxBytes }: NonNullable<HoldfastConfig['podLogs']>,
  logger: Logger,
): PodLogs {
  return {
    maxBytes,
    async keep(of, text) {
      if (to === 'log') {
        logger.warn({ ...of, tail: text }, 'the last lines of a runner that did not succeed');
        return;
      }
      const path = await write(to.folder, of.pod, text);
      logger.warn({ ...of, path }, 'kept the last lines of a runner that did not succeed');
    },
    failed(of, error) {
      logger.warn(
        { ...of, err: error },
        'the last lines of a runner that did not succeed are lost',
      );
    },
  };
}

/**
 * Writes a file that only its owner can read, because the log of a job may contain secrets. Pod
 * names are unique DNS labels.
 */
async function write(folder: string, pod: string, text: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${pod}.log`);
  await writeFile(`${path}.tmp`, text, { mode: 0o600 });
  await rename(`${path}.tmp`, path);
  return path;
}
