/** Lives before those that are measured. */
import { REPOSITORY, startRunners, untilClosed, untilPhase } from './runners.ts';
import type { BenchEnvironment } from './world.ts';

const LIVES = 100;
const JOB_MS = 100;

/**
 * Has the worker carry some lives from start to end. One that has just started compiles its code while it works, which takes a quarter of
 * its CPU time for the first 200 runners; a user's worker has been at work for days. With `--cold` nothing is done.
 */
export async function warmUp(world: BenchEnvironment): Promise<void> {
  const { agent, simulator, progress, cold } = world;
  if (cold) return;
  progress(`warming up with ${LIVES} lives`);
  await startRunners(world, LIVES, { prefix: 'warm-up' });
  await untilPhase(world, 'Idle', LIVES);
  for (let job = 0; job < LIVES; job++)
    await simulator.queueJob({ repo: REPOSITORY, sleepMs: JOB_MS });
  await untilClosed(world, LIVES);
  await simulator.resetRequests();
  agent.startOver();
}
