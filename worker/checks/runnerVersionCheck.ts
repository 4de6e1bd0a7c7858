/** Checks until when the CI servers accept the runner versions of the sets. */
import { Client, type ConnectionLike } from '@temporalio/client';
import pMap from 'p-map';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { listRoutingInfo } from '../../activities/runnerSet/listRoutingInfo.ts';
import type { RunnerSetStatus } from '../../core/contract/index.ts';
import { isDeadlineNear, runnerVersionText } from '../../core/domain/runnerVersion.ts';
import { dataConverterOf } from '../codec/dataConverter.ts';
import type { HoldfastConfig } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/** Maximum number of sets that are queried. */
const MAX_SETS = 200;
/** Deadline of a query (ms). A set without a worker does not answer. */
const QUERY_DEADLINE_MS = 2_000;
const AT_ONCE = 10;

/**
 * Checks what the workers have found in their daily check. Sets that do not answer are skipped,
 * because another check reports a missing worker.
 * @throws the error of the connection if the sets cannot be listed
 */
export async function checkRunnerVersions(
  {
    temporal: { namespace },
    taskQueue,
    codecKeyFile,
  }: Pick<HoldfastConfig, 'temporal' | 'taskQueue' | 'codecKeyFile'>,
  connection: ConnectionLike,
): Promise<Finding[]> {
  const client = new Client({
    connection,
    namespace,
    dataConverter: dataConverterOf(codecKeyFile),
  });
  const sets = [...(await listRoutingInfo(client, taskQueue, MAX_SETS)).keys()];
  const statuses = await pMap(
    sets,
    async (workflowId) =>
      await client
        .withDeadline(
          Date.now() + QUERY_DEADLINE_MS,
          async () => await querySetStatus(client, workflowId, { max: 0 }),
        )
        .catch(() => undefined),
    { concurrency: AT_ONCE },
  );
  return evaluateRunnerVersions(
    statuses.filter((status) => status !== undefined),
    Date.now(),
  );
}

/**
 * Returns a warning for each set whose runner version is accepted for less than a week.
 * @param now - ms since the epoch
 */
export function evaluateRunnerVersions(
  statuses: readonly Pick<RunnerSetStatus, 'name' | 'runnerVersion'>[],
  now: number,
): Finding[] {
  return statuses.flatMap(({ name, runnerVersion }): Finding[] => {
    return runnerVersion === undefined || !isDeadlineNear(runnerVersion, now)
      ? []
      : [
          {
            level: 'warning',
            message: `set ${name}: the CI server refuses its runner version soon, or does so already (${runnerVersionText(runnerVersion)})`,
            fix: 'use an image with a newer runner in the template ("holdfast set apply"), or update the worker if the set uses its default image',
          },
        ];
  });
}
