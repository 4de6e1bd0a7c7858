import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { mapConcurrently } from '../concurrency.ts';
import { startRunners, untilClosed, untilPhase } from '../runners.ts';
import { percentile, roundTo } from '../statistics.ts';
import { completedEndWait } from '../waits.ts';

export const recovery: WorldBenchmark = {
  name: 'recovery',
  summary:
    'kill -9 of all workers while N runners wait; half of the pods end before new workers are started, the others afterwards',
  defaultRunners: 1_000,
  severalWorkers: true,
  figures: {
    runners: { unit: 'runners', what: 'waiting runners' },
    seconds: {
      unit: 's',
      what: 'from the start of the new workers until the waits for all pods are completed, which killed workers had started',
      budget: { kind: 'max', limit: 15, note: 'with 1,000 runners' },
    },
  },

  async run(world, runners): Promise<Measured> {
    const { agent, client, progress } = world;
    const killed = await world.startWorkers();
    progress(`starting ${runners} runners`);
    const ids = (await startRunners(world, runners)).map(({ workflowId }) => workflowId);
    await untilPhase(world, 'Idle', runners);
    progress('killing the workers (SIGKILL)');
    await Promise.all(killed.map((worker) => worker.kill()));
    const half = Math.ceil(runners / 2);
    const endedWhileAway = await agent.endAll(ids.slice(0, half));
    progress(`${endedWhileAway} pods ended while no worker ran; starting new workers`);
    const startedAt = Date.now();
    // Record the time here, because ending the pods below may take longer.
    const starting = world.startWorkers().then(() => Date.now());
    starting.catch(() => undefined); // awaited below, which throws
    const cpu = await world.cpuAccount();
    const endedAfter = await agent.endAll(ids.slice(half));
    const lastInjectedAt = Date.now();
    if (endedWhileAway + endedAfter !== runners)
      throw new Error(`only ${endedWhileAway + endedAfter} of ${runners} pods could be ended`);
    const readyAt = await starting;
    await untilClosed(world, runners);
    const cores = await cpu.close();
    const waits = await mapConcurrently(ids, 16, async (workflowId) => {
      const wait = await completedEndWait(client, workflowId);
      if (!wait)
        throw new Error(`the wait of ${workflowId} for the end of its runner was not completed`);
      return wait;
    });
    const after = waits.map(({ completedAt }) => completedAt - startedAt);
    const startedByKilled = waits.filter(({ startedBy }) =>
      killed.some(({ identityPrefix }) => startedBy.startsWith(identityPrefix)),
    ).length;
    return {
      figures: { runners, seconds: roundTo(Math.max(...after) / 1_000, 1) },
      details: {
        cores,
        // The other waits had reached their re-sync, so a new worker started them again.
        waitsStartedByDeadWorkers: startedByKilled,
        workerReadyAfterS: roundTo((readyAt - startedAt) / 1_000, 1),
        lastPodEndedAfterS: roundTo((lastInjectedAt - startedAt) / 1_000, 1),
        p50S: roundTo(percentile(after, 0.5) / 1_000, 1),
        p95S: roundTo(percentile(after, 0.95) / 1_000, 1),
      },
    };
  },
};
