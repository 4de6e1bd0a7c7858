/** Runs runners before the measurement. */
import { REPOSITORY, startRunners, untilClosed, untilPhase } from './runners.ts';
import type { BenchEnvironment } from './world.ts';

const WARM_UP_RUNNERS = 100;
const JOB_MS = 100;

/**
 * Runs some runners from start to end. A new worker compiles its code while it works, which takes a
 * quarter of its CPU time for the first 200 runners. Workers of users run for days. Does nothing
 * with `--cold`.
 */
export async function warmUp(world: BenchEnvironment): Promise<void> {
  const { agent, simulator, progress, cold } = world;
  if (cold) return;
  progress(`warming up with ${WARM_UP_RUNNERS} runners`);
  await startRunners(world, WARM_UP_RUNNERS, { prefix: 'warm-up' });
  await untilPhase(world, 'Idle', WARM_UP_RUNNERS);
  for (let job = 0; job < WARM_UP_RUNNERS; job++)
    await simulator.queueJob({ repo: REPOSITORY, sleepMs: JOB_MS });
  await untilClosed(world, WARM_UP_RUNNERS);
  await simulator.resetRequests();
  agent.startOver();
}
