/** Checks whether Temporal sends new workflows to a worker version that polls. */
import type { ConnectionLike } from '@temporalio/client';
import { hasRecentPoller } from '../../core/domain/pollers.ts';
import type { HoldfastConfig } from '../settings/config.ts';
import type { Finding } from './finding.ts';
import { cliFlags } from './temporalCheck.ts';

/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW = 1;

/** Version of a Worker Deployment. */
interface Version {
  readonly deploymentName: string;
  readonly buildId: string;
}

/**
 * Checks that a worker of the current version polls the task queue.
 * @returns no finding if no worker has a version
 * @throws the error of the connection if Temporal does not answer
 */
export async function checkVersions(
  { temporal, taskQueue }: Pick<HoldfastConfig, 'temporal' | 'taskQueue'>,
  connection: ConnectionLike,
): Promise<Finding[]> {
  const { pollers, versioningInfo } = await connection.workflowService.describeTaskQueue({
    namespace: temporal.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: WORKFLOW,
  });
  const current = versioningInfo?.currentDeploymentVersion;
  return evaluateVersions(
    taskQueue,
    (pollers ?? []).filter(isNow).map(versionOf),
    current?.buildId
      ? { deploymentName: current.deploymentName ?? '', buildId: current.buildId }
      : undefined,
    cliFlags(temporal),
  );
}

type Poller = NonNullable<
  Awaited<ReturnType<ConnectionLike['workflowService']['describeTaskQueue']>>['pollers']
>[number];

const isNow = ({ lastAccessTime }: Poller): boolean =>
  hasRecentPoller([Number(lastAccessTime?.seconds ?? 0) * 1_000], Date.now());

/** temporal.api.enums.v1.WorkerVersioningMode */
const VERSIONED = 2;

function versionOf({ deploymentOptions }: Poller): Version | undefined {
  return Number(deploymentOptions?.workerVersioningMode) === VERSIONED
    ? {
        deploymentName: deploymentOptions?.deploymentName ?? '',
        buildId: deploymentOptions?.buildId ?? '',
      }
    : undefined;
}

/**
 * Returns the findings about the versions of the workers.
 * @param polling - version of each poller of the task queue; `undefined` for a worker without a
 * version
 * @param current - version that gets new workflows. Absent: workers without a version get them
 * @param where - flags for the Temporal CLI with a leading space; may be empty
 */
export function evaluateVersions(
  taskQueue: string,
  polling: readonly (Version | undefined)[],
  current: Version | undefined,
  where: string,
): Finding[] {
  const names = [
    ...new Set(polling.map((each) => (each === undefined ? 'without a version' : nameOf(each)))),
  ].toSorted();
  const other = polling.find((each) => each !== undefined);
  const setCurrent = ({ deploymentName, buildId }: Version): string =>
    `temporal worker deployment set-current-version --deployment-name ${deploymentName} --build-id ${buildId}${where}`;
  if (current === undefined) {
    if (other === undefined || polling.includes(undefined)) return [];
    return [
      {
        level: 'error',
        message: `task queue "${taskQueue}": no version of its workers is current, so they are given nothing new (polling: ${names.join(', ')})`,
        fix: setCurrent(other),
      },
    ];
  }
  if (names.includes(nameOf(current)))
    return [
      {
        level: 'ok',
        message: `task queue "${taskQueue}": new workflows start on version ${nameOf(current)}`,
      },
    ];
  return [
    {
      level: 'error',
      message: `task queue "${taskQueue}": new workflows start on version ${nameOf(current)}, of which no worker polls (polling: ${names.join(', ') || 'none'})`,
      fix: `start workers of that version (kubectl get deployments -A -l temporal.io/build-id=${current.buildId})${other === undefined ? '' : `, or have it begin on another: ${setCurrent(other)}`}`,
    },
  ];
}

const nameOf = ({ deploymentName, buildId }: Version): string => `${buildId} of ${deploymentName}`;
