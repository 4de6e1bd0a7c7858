import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { PodLogs } from '../../activities/ports/activityPorts.ts';
import type { HoldfastConfig } from '../settings/config.ts';

/**
 * Creates the store for the last log lines of runners that did not succeed. HOLDFAST_POD_LOGS
 * selects the log of the worker, or a directory.
 */
export function createPodLogStore(
  { to, maxBytes }: NonNullable<HoldfastConfig['podLogs']>,
  logger: Logger,
): PodLogs {
  return {
    maxBytes,
    async keep(runner, text) {
      if (to === 'log') {
        logger.warn({ ...runner, tail: text }, 'the last lines of a runner that did not succeed');
        return;
      }
      const path = await write(to.folder, runner.pod, text);
      logger.warn({ ...runner, path }, 'kept the last lines of a runner that did not succeed');
    },
    failed(runner, error) {
      logger.warn(
        { ...runner, err: error },
        'failed to keep the last lines of a runner that did not succeed',
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
