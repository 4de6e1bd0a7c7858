/** Controller of RunnerSet resources, with its own connections to the API server. */
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { ApiRequestMetrics } from '../../activities/compute/kubernetes/apiServer.ts';
import type { Location } from '../../core/domain/location.ts';
import type { HoldfastConfig } from '../settings/config.ts';
import { kubeConfigSource } from '../settings/kubeConfigSource.ts';

/** Options of {@link startRunnerSetController}. */
export interface StartOptions {
  /**
   * Returns the current client.
   * @throws Error if there is no connection to Temporal
   */
  readonly client: () => Client;
  /** Returns the location of the worker's runners, whose cluster has the resources. */
  readonly location: () => Promise<Location>;
  readonly logger: Logger;
  readonly onRequest: (measure: ApiRequestMetrics) => void;
}

/** Maximum connections: one list, one watch, and a few requests after a change. */
const CONNECTIONS = 4;

/**
 * Starts the controller of RunnerSet resources.
 * @returns `undefined` if no namespace is configured
 * @throws KubeConfigError if no cluster is configured
 */
export async function startRunnerSetController(
  { compute, taskQueue }: HoldfastConfig,
  { client, location, logger, onRequest }: StartOptions,
): Promise<{ stop(): Promise<void> } | undefined> {
  if (compute.kind !== 'kubernetes' || compute.runnerSetNamespace === undefined) return undefined;
  const namespace = compute.runnerSetNamespace;
  // Import on demand: loading the Kubernetes client takes most of a second.
  const [
    { ApiServer },
    { loadKubeConfig },
    { ResourceApi },
    { RunnerSetController },
    { SetWorkflows },
  ] = await Promise.all([
    import('../../activities/compute/kubernetes/apiServer.ts'),
    import('../../activities/compute/kubernetes/kubeConfig.ts'),
    import('./resourceApi.ts'),
    import('./runnerSetController.ts'),
    import('./setWorkflows.ts'),
  ]);
  const server = new ApiServer(loadKubeConfig(kubeConfigSource(compute)), {
    connections: CONNECTIONS,
    onRequest,
  });
  const controller = new RunnerSetController({
    api: new ResourceApi(server, namespace),
    sets: new SetWorkflows({ client, taskQueue }),
    namespace,
    cluster: async () => (await location()).cluster,
    taskQueue,
    logger,
  });
  return {
    async stop() {
      await controller.stop();
      await server.close();
    },
  };
}
