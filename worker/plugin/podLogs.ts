/** Where the last lines of a runner go that did not succeed, by HOLDFAST_POD_LOGS: the worker's own log, or a folder. */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { PodLogs } from '../../activities/ports.ts';
import type { HoldfastConfig } from '../settings/config.ts';

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

/** Readable by its owner only: a job's log may hold anything. Pods' names are DNS labels, and unique. */
async function write(folder: string, pod: string, text: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${pod}.log`);
  await writeFile(`${path}.tmp`, text, { mode: 0o600 });
  await rename(`${path}.tmp`, path);
  return path;
}
