import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { BarePods } from '../barePods.ts';
import { floorOfScaleup } from '../floor.ts';
import { startRunners, untilPhase } from '../runners.ts';
import { percentile, round } from '../statistics.ts';
import { warmUp } from '../warmUp.ts';

/** GitHub's answers take about that long. */
const CI_SERVER_LATENCY_MS = 100;
const GIVE_UP_MS = 600_000;

export const scaleup: WorldBenchmark = {
  name: 'scaleup',
  summary: 'N runners at once from nothing to online, the CI server answering in 100 ms',
  defaultRunners: 200,
  figures: {
    runners: { unit: 'runners', what: 'started at once' },
    perSecond: { unit: '/s', what: 'online, from the first start to the last runner online', budget: { kind: 'min', limit: 30 }, compare: 'actions-runner-controller: 2.5 (scale set) to 28 (legacy, tuned)' },
    createdP95Ms: { unit: 'ms', what: 'accepted by Temporal → pod created, p95' },
    onlineP95Ms: { unit: 'ms', what: 'accepted by Temporal → runner online at the CI server, p95' },
    'floor.perSecond': { unit: '/s', what: 'the same pods, made by a bare script on this machine in this run', compare: 'where the budget was set: 152' },
    'floor.share': { unit: '', what: 'perSecond of that', compare: 'the budget where it was set: 0.2; actions-runner-controller there: 0.02 to 0.18' },
  },

  async run(world, runners): Promise<Measured> {
    const { agent, simulator, progress } = world;
    await world.startWorker().ready();
    await warmUp(world);
    await simulator.addFault({ kind: 'latency', ms: CI_SERVER_LATENCY_MS });
    const cpu = await world.cpuAccount();
    progress(`starting ${runners} runners`);
    const startedAt = Date.now();
    const started = await startRunners(world, runners);
    const acceptedMs = Date.now() - startedAt;
    await agent.until(`${runners} runners are online`, () => agent.count('online') >= runners, GIVE_UP_MS);
    const allOnlineMs = Math.max(...started.map(({ workflowId }) => agent.of(workflowId).online ?? 0)) - startedAt;
    const cores = await cpu.close();
    progress('all are online; waiting until all workflows know it');
    await untilPhase(world, 'Idle', runners);
    const pods = await BarePods.open(world);
    progress(`the same ${runners} pods by a bare script`);
    const floorPerSecond = await floorOfScaleup(pods, runners);
    await pods.close();
    const perSecond = round(runners / (allOnlineMs / 1_000), 1);
    const since = (step: 'created' | 'running' | 'online'): number[] => started.map(({ workflowId, acceptedAt }) => (agent.of(workflowId)[step] ?? Number.NaN) - acceptedAt);
    return {
      figures: {
        runners,
        perSecond,
        createdP95Ms: percentile(since('created'), 0.95),
        onlineP95Ms: percentile(since('online'), 0.95),
        'floor.perSecond': floorPerSecond,
        'floor.share': round(perSecond / floorPerSecond, 2),
      },
      details: {
        cores,
        allAcceptedMs: acceptedMs,
        allOnlineMs,
        allKnownIdleMs: Date.now() - startedAt,
        createdP50Ms: percentile(since('created'), 0.5),
        runningP50Ms: percentile(since('running'), 0.5),
        onlineP50Ms: percentile(since('online'), 0.5),
      },
    };
  },
};
