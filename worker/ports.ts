/** Builds, from the configuration, what the activities work with. */
import { createCiServers } from '../activities/ciServers/index.ts';
import { createProcessCompute } from '../activities/compute/process/processCompute.ts';
import type { CiServers, Compute } from '../activities/ports.ts';
import type { Logger } from 'pino';
import { ciQueuesOf } from './ciQueues.ts';
import type { CiQueue } from './companions.ts';
import type { HoldfastConfig } from './config.ts';
import type { Metrics } from './metrics.ts';

export interface Ports {
  readonly compute: Compute;
  readonly ciServers: CiServers;
  readonly ciQueues: readonly CiQueue[];
  close(): Promise<void>;
}

export interface PortsOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export async function createPorts(config: HoldfastConfig, { logger, metrics }: PortsOptions): Promise<Ports> {
  const ciServers = createCiServers(config.credentials, { logger: logger.child({ component: 'ci' }), onRequest: metrics.ciRequest });
  return {
    compute: await createCompute(config.compute, logger),
    ciServers,
    ciQueues: ciQueuesOf(config.credentials),
    close: async () => await ciServers.close(),
  };
}

async function createCompute(compute: HoldfastConfig['compute'], logger: Logger): Promise<Compute> {
  const log = logger.child({ component: 'compute' });
  if (compute.kind === 'process') {
    return createProcessCompute({ stateDir: compute.stateDir, logger: log, ...(compute.command && { command: compute.command }) });
  }
  throw new Error('HOLDFAST_COMPUTE=kubernetes is not in this build yet: set HOLDFAST_COMPUTE=process');
}
