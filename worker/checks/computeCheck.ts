/** Checks whether runners can be created with the worker's compute settings. */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import { kubeConfigSource } from '../settings/kubeConfigSource.ts';
import type { Finding } from './finding.ts';
import type { Permission, RunnerNamespace } from './permissions.ts';

type ClusterConfig = Extract<HoldfastConfig['compute'], { kind: 'kubernetes' }>;

/**
 * Checks that runners can be started: access to the state directory, or connection and permissions
 * of the cluster.
 */
export async function checkCompute({
  compute,
}: Pick<HoldfastConfig, 'compute'>): Promise<Finding[]> {
  return compute.kind === 'process'
    ? [checkStateDir(compute.stateDir)]
    : await checkCluster(compute);
}

/** Returns each namespace of the worker's runners with the permissions that it needs there. */
function runnerNamespaces(
  home: string,
  { otherNamespaces, jobPodNamespaces }: ClusterConfig,
): RunnerNamespace[] {
  return [...new Set([home, ...otherNamespaces, ...jobPodNamespaces])].map((namespace) => ({
    namespace,
    ownsJobPods: jobPodNamespaces.includes(namespace),
  }));
}

async function checkCluster(compute: ClusterConfig): Promise<Finding[]> {
  // Import on demand: loading the Kubernetes client takes most of a second.
  const [{ loadKubeConfig }, { namespaceOf }, { checkPermissions }] = await Promise.all([
    import('../../activities/compute/kubernetes/kubeConfig.ts'),
    import('../../activities/compute/kubernetes/kubernetesCompute.ts'),
    import('./permissions.ts'),
  ]);
  const setting =
    compute.context === undefined
      ? 'HOLDFAST_KUBECONFIG'
      : 'HOLDFAST_KUBECONFIG, HOLDFAST_KUBE_CONTEXT';
  let kubeConfig;
  try {
    kubeConfig = loadKubeConfig(kubeConfigSource(compute));
  } catch (error) {
    return [
      {
        level: 'error',
        message: `${setting}: ${oneLine(error)}`,
        fix: 'set HOLDFAST_KUBECONFIG to a kubeconfig file that has the context, or HOLDFAST_COMPUTE=process to do without a cluster',
      },
    ];
  }
  const server = kubeConfig.getCurrentCluster()?.server ?? '';
  const namespaces = runnerNamespaces(namespaceOf(kubeConfig, compute.namespace), compute);
  try {
    const { user, missing, fix } = await checkPermissions(kubeConfig, namespaces);
    if (fix === undefined) {
      const names = namespaces.map(({ namespace }) => `"${namespace}"`).join(', ');
      const where = namespaces.length === 1 ? `namespace ${names}` : `the namespaces ${names}`;
      return [
        {
          level: 'ok',
          message: `Kubernetes at ${server}: ${user} has all permissions in ${where}`,
        },
      ];
    }
    return [
      {
        level: 'error',
        message: `Kubernetes permissions missing: ${user} may not, ${describeMissing(missing)}`,
        fix,
      },
    ];
  } catch (error) {
    return [
      {
        level: 'error',
        message: `${setting}: the Kubernetes API server at ${server} does not answer our questions: ${oneLine(error)}`,
        fix: 'check that the server runs and that the kubeconfig is the right one',
      },
    ];
  }
}

function describeMissing(missing: readonly Permission[]): string {
  return [...Map.groupBy(missing, ({ namespace }) => namespace)]
    .map(([namespace, each]) => {
      const verbs = each.map(
        ({ verb, resource, name }) =>
          `${verb} ${resource}${name === undefined ? '' : ` "${name}"`}`,
      );
      return `in namespace "${namespace}": ${verbs.join(', ')}`;
    })
    .join('; ');
}

function checkStateDir(stateDir: string): Finding {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return { level: 'ok', message: `state folder ${stateDir}` };
  } catch (error) {
    return {
      level: 'error',
      message: `HOLDFAST_STATE_DIR: the state folder ${stateDir} cannot be used (${oneLine(error)})`,
      fix: 'set HOLDFAST_STATE_DIR to a folder that the worker may write to',
    };
  }
}
