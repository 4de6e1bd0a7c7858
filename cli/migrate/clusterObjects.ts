/** Reads the objects of ARC from a cluster. It changes nothing and reads no Secret. */
import type { KubeConfig } from '@kubernetes/client-node';
import { ApiError, ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import { listObjects } from '../../activities/compute/kubernetes/objectList.ts';
import { CliError } from '../shared/exit.ts';
import type { FoundValue } from './chartValues.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

const SCALE_SETS = 'actions.github.com/v1alpha1';
const LEGACY = 'actions.summerwind.dev/v1alpha1';
/** API version, kind and plural of each resource. The plural is its path. */
const RESOURCES = [
  [SCALE_SETS, 'AutoscalingRunnerSet', 'autoscalingrunnersets'],
  [LEGACY, 'RunnerDeployment', 'runnerdeployments'],
  [LEGACY, 'RunnerReplicaSet', 'runnerreplicasets'],
  [LEGACY, 'RunnerSet', 'runnersets'],
  [LEGACY, 'Runner', 'runners'],
  [LEGACY, 'HorizontalRunnerAutoscaler', 'horizontalrunnerautoscalers'],
] as const;
/** Maximum number of objects of all kinds. Most of them are runners that other objects own. */
const MOST = 10_000;

/**
 * Lists the objects of ARC.
 * @param namespace - namespace to list.
 * @default all namespaces
 * @throws CliError `failed`, with the resource that could not be listed
 */
export async function clusterObjects(
  config: KubeConfig,
  namespace: string | undefined,
): Promise<FoundValue[]> {
  const server = new ApiServer(config);
  const found: FoundValue[] = [];
  try {
    for (const [apiVersion, kind, resource] of RESOURCES) {
      const path = `/apis/${apiVersion}${namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`}/${resource}`;
      const onObject = (object: object): void => {
        if (found.length === MOST)
          throw new CliError(
            'failed',
            `${resource}: with these there are more than ${MOST} objects; give --kube-namespace`,
          );
        found.push({ source: 'cluster', value: { ...object, apiVersion, kind } });
      };
      await listObjects(server, `${kind}List`, {
        resource,
        path,
        labelSelector: '',
        onObject,
      }).catch((error: unknown) => notListed(error, resource));
    }
  } finally {
    await server.close();
  }
  return found;
}

/** Handles a failed list. A kind that is not installed has no objects. */
function notListed(error: unknown, resource: string): void {
  if (error instanceof CliError) throw error;
  if (error instanceof ApiError && error.code === 404) return;
  const forbidden = error instanceof ApiError && error.code === 403;
  const reason = forbidden
    ? 'the cluster does not allow it: ask for the verb "list", or give --kube-namespace'
    : errorMessage(error);
  throw new CliError('failed', `${resource} could not be listed: ${reason}`, { cause: error });
}
