/** Builds, from the configuration, what the activities work with. */
import { createCiServers } from '../activities/ciServers/index.ts';
import { pointsPerMinute, type Credentials } from '../activities/ciServers/credentials.ts';
import { createProcessCompute } from '../activities/compute/process/processCompute.ts';
import type { CiServers, Compute } from '../activities/ports.ts';
import type { Logger } from 'pino';
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

/** A write costs 5 of GitHub's points, and nearly all that runners ask for are writes. */
const POINTS_PER_WRITE = 5;

export async function createPorts(config: HoldfastConfig, { logger, metrics }: PortsOptions): Promise<Ports> {
  const ciServers = createCiServers(config.credentials, { logger: logger.child({ component: 'ci' }), onRequest: metrics.ciRequest });
  return {
    compute: await createCompute(config.compute, logger),
    ciServers,
    ciQueues: ciQueuesOf(config.credentials),
    close: async () => await ciServers.close(),
  };
}

/**
 * The task queue of each credential is limited to the pace that its server allows, over all workers: a scale-up of thousands becomes
 * a queue, not errors. Never more than 90 at once in one process: GitHub refuses the 101st request.
 */
export function ciQueuesOf(credentials: Credentials): CiQueue[] {
  return Object.entries(credentials).map(([name, credential]) => {
    const points = pointsPerMinute(credential);
    const queue = { credential: name, concurrency: Math.min(90, credential.maxInFlight) };
    return points === undefined ? queue : { ...queue, maxPerSecond: points / POINTS_PER_WRITE / 60 };
  });
}

async function createCompute(compute: HoldfastConfig['compute'], logger: Logger): Promise<Compute> {
  const log = logger.child({ component: 'compute' });
  if (compute.kind === 'process') {
    return createProcessCompute({ stateDir: compute.stateDir, logger: log, ...(compute.command && { command: compute.command }) });
  }
  throw new Error('HOLDFAST_COMPUTE=kubernetes is not in this build yet: set HOLDFAST_COMPUTE=process');
}
