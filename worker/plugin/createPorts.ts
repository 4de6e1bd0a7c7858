/** Creates the dependencies of the activities from the configuration. */
import type { Logger } from 'pino';
import { createCiServers } from '../../activities/ciServers/index.ts';
import type { PodDefaults } from '../../activities/compute/kubernetes/podSpec.ts';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import type { CiServers } from '../../activities/ports/ciServer.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import type { Logger as ActivityLogger } from '../../activities/ports/logger.ts';
import type { PodLogs } from '../../activities/ports/activityPorts.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { ciQueuesOf, type CiQueue } from '../settings/ciQueues.ts';
import type { HoldfastConfig } from '../settings/config.ts';
import { kubeConfigSource } from '../settings/kubeConfigSource.ts';
import type { Metrics } from '../process/metrics.ts';
import { createPodLogStore } from './podLogs.ts';
import type { TimeoutPolicy } from '../../core/input/timeoutPolicy.ts';

/** Dependencies of the activities. Close them at the end. */
export interface Ports {
  readonly compute: Compute;
  readonly ciServers: CiServers;
  readonly timeoutPolicy: TimeoutPolicy;
  readonly podLogs?: PodLogs;
  readonly ciQueues: readonly CiQueue[];
  close(): Promise<void>;
}

/** Logger and metrics for {@link createPorts}. */
export interface PortsOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Compute with the function that closes it. */
interface OwnedCompute {
  readonly compute: Compute;
  readonly close?: () => Promise<void>;
}

/**
 * Creates the dependencies of the activities from the configuration.
 * @throws KubeConfigError if no cluster is configured
 * @throws CredentialsError if a CA file cannot be read
 */
export async function createPorts(
  config: HoldfastConfig,
  { logger, metrics }: PortsOptions,
): Promise<Ports> {
  const { compute, close } = await createCompute(config, {
    logger: logger.child({ component: 'compute' }),
    metrics,
  });
  const ciServers = createCiServers(config.credentials, {
    logger: logger.child({ component: 'ci' }),
    onRequest: metrics.ciRequest,
  });
  return {
    compute,
    ciServers,
    timeoutPolicy: config.timeouts,
    ...(config.podLogs && {
      podLogs: createPodLogStore(config.podLogs, logger.child({ component: 'podLogs' })),
    }),
    ciQueues: ciQueuesOf(config.credentials),
    async close() {
      await Promise.all([ciServers.close(), close?.()]);
    },
  };
}

function supervised({
  supervisorImage: image,
  store: place,
}: Extract<HoldfastConfig['compute'], { kind: 'kubernetes' }>): Partial<
  Pick<PodDefaults, 'supervisor' | 'store'>
> {
  if (image === undefined) return {};
  return { supervisor: { image }, ...(place === undefined ? {} : { store: { image, place } }) };
}

/**
 * Creates the compute that the configuration selects.
 * @throws KubeConfigError if no cluster is configured
 */
export async function createCompute(
  { compute, installation }: HoldfastConfig,
  {
    logger,
    metrics,
  }: { logger: ActivityLogger; metrics?: Pick<Metrics, 'kubernetesRequest' | 'jobPods'> },
): Promise<OwnedCompute> {
  if (compute.kind === 'process') {
    return {
      compute: createProcessCompute({
        stateDir: compute.stateDir,
        installation,
        logger,
        anyCommand: compute.anyCommand,
        ...omitUndefined({ command: compute.command }),
      }),
    };
  }
  // Import on demand: loading the Kubernetes client takes most of a second.
  const [{ createKubernetesCompute }, { loadKubeConfig }] = await Promise.all([
    import('../../activities/compute/kubernetes/kubernetesCompute.ts'),
    import('../../activities/compute/kubernetes/kubeConfig.ts'),
  ]);
  const kubernetes = createKubernetesCompute({
    kubeConfig: loadKubeConfig(kubeConfigSource(compute)),
    ...omitUndefined({ namespace: compute.namespace }),
    otherNamespaces: compute.otherNamespaces,
    jobPodNamespaces: compute.jobPodNamespaces,
    installation,
    policy: compute.policy,
    podDefaults: {
      image: compute.image,
      ...omitUndefined({
        command: compute.command,
        user: compute.user,
        template: compute.template,
        jobClaim: compute.jobClaim,
      }),
      ...supervised(compute),
    },
    logger,
    ...omitUndefined({ onRequest: metrics?.kubernetesRequest, onJobPodCount: metrics?.jobPods }),
  });
  return { compute: kubernetes, close: async () => await kubernetes.close() };
}
