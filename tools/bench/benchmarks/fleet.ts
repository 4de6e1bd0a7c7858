import { setTimeout as delay } from 'node:timers/promises';
import { setWorkflowId } from '../../../core/contract/index.ts';
import type { FigureInfo, Figures, Measured, WorldBenchmark } from '../benchmark.ts';
import { deliver, queuedDeliveries } from '../deliveries.ts';
import { queueAtPace, timeOfStep, untilAtRest } from '../jobPace.ts';
import { countClosed } from '../runners.ts';
import { startSet, statusOf } from '../sets.ts';
import { percentile, roundTo } from '../statistics.ts';
import { WEBHOOK_SECRET, type BenchEnvironment } from '../world.ts';

/**
 * Jobs per second, and the duration of each rate (s). There are enough jobs for a p95. At the
 * highest rate there are more than a machine can run in that time.
 */
const RATES = { 1: 30, 10: 15, 50: 6 } as const;
const JOB_MS = 1_000;
const GIVE_UP_MS = 600_000;
const PROCESSED_WITHIN_MS = 60_000;
/** Number of deliveries. Less than the 10,000 jobs that a set remembers. */
const DELIVERIES = 5_000;
const WARM_UP = 500;
const AT_ONCE = 50;
const ONE_BY_ONE = 50;

export const fleet: WorldBenchmark = {
  name: 'fleet',
  summary:
    'jobs of 1 s, reported by webhooks, for a set of at most N runners without idle ones: 1, 10 and 50 a second; then the webhook alone, with Temporal',
  defaultRunners: 500,
  figures: {
    ...rateFigures(),
    'webhook.deliveries': {
      unit: 'deliveries',
      what: `deliveries for one set, ${AT_ONCE} in progress at any time`,
    },
    'webhook.perSecond': {
      unit: '/s',
      what: 'deliveries with the response 202, which Temporal has accepted',
    },
    'webhook.p50Ms': { unit: 'ms', what: 'delivery sent → response, median' },
    'webhook.p95Ms': { unit: 'ms', what: '… p95' },
    'webhook.p99Ms': {
      unit: 'ms',
      what: '… p99; GitHub gives up after 10 s',
      budget: { kind: 'max', limit: 10_000 },
    },
  },

  async run(world, runners): Promise<Measured> {
    const { simulator, progress } = world;
    const worker = await world.startWorker().ready();
    const url = await worker.webhook();
    await simulator.setWebhook({ url: url.href, secret: WEBHOOK_SECRET });
    const set = await startSet(world, 'followed', { minIdle: 0, max: runners });
    const figures: Record<string, number> = {};
    const details: Record<string, unknown> = { runners };
    for (const [rate, seconds] of Object.entries(RATES)) {
      progress(`${rate} jobs a second for ${seconds} s`);
      const cpu = await world.cpuAccount();
      const { figures: measured, ...more } = await follow(
        world,
        set,
        Number(rate),
        Number(rate) * seconds,
      );
      details[`rate${rate}`] = { ...more, cores: await cpu.close() };
      for (const [key, value] of Object.entries(measured)) figures[`rates.${rate}.${key}`] = value;
    }
    details['answers'] = Object.fromEntries(
      [...Map.groupBy(await simulator.deliveries(), ({ status_code: code }) => code)].map(
        ([code, { length }]) => [code, length],
      ),
    );
    const webhook = await measureWebhook(world, url);
    return {
      figures: { ...figures, ...webhook.figures },
      details: { ...details, webhook: webhook.details },
    };
  },
};

function rateFigures(): Record<string, FigureInfo> {
  const figures: Record<string, FigureInfo> = {};
  for (const [rate, seconds] of Object.entries(RATES)) {
    figures[`rates.${rate}.jobs`] = {
      unit: 'jobs',
      what: `queued at ${rate} a second, for ${seconds} s`,
    };
    figures[`rates.${rate}.onlineP50Ms`] = {
      unit: 'ms',
      what: 'job queued, its webhook sent → the runner that took it online, median',
    };
    figures[`rates.${rate}.onlineP95Ms`] = { unit: 'ms', what: '… p95' };
    figures[`rates.${rate}.reachedPerSecond`] = {
      unit: '/s',
      what: 'runners that came online, from the first to the last',
    };
  }
  return figures;
}

/** Queues jobs at that pace, and waits until all are over and the set is at rest. */
async function follow(
  world: BenchEnvironment,
  set: string,
  rate: number,
  count: number,
): Promise<{ figures: Figures; queuedWithinMs: number; allDoneMs: number; mostRunners: number }> {
  const { agent, client, simulator } = world;
  const before = { gone: agent.count('gone'), closed: await countClosed(world) };
  const startedAt = performance.now();
  const ids = await queueAtPace(world, set, { rate, count, jobMs: JOB_MS });
  const queuedWithinMs = roundTo(performance.now() - startedAt);
  await agent.until(
    `${count} jobs are done and their pods are gone`,
    () => agent.count('gone') >= before.gone + count,
    GIVE_UP_MS,
  );
  const allDoneMs = roundTo(performance.now() - startedAt);
  await untilAtRest(world, set, before.closed + count);
  const jobs = (await simulator.jobs()).filter(({ id }) => ids.has(id));
  const times = jobs.map((job) => ({
    queuedAt: Date.parse(job.created_at),
    onlineAt: timeOfStep(world, set, job, 'online'),
  }));
  const waited = times.map(({ queuedAt, onlineAt }) => onlineAt - queuedAt);
  const online = times.map(({ onlineAt }) => onlineAt);
  const { jobs: counted } = await statusOf(client, set);
  return {
    figures: {
      jobs: count,
      onlineP50Ms: percentile(waited, 0.5),
      onlineP95Ms: percentile(waited, 0.95),
      reachedPerSecond: roundTo(
        (count - 1) / ((Math.max(...online) - Math.min(...online)) / 1_000),
        1,
      ),
    },
    queuedWithinMs,
    allDoneMs,
    mostRunners: mostAtOnce(
      times.map(({ onlineAt }) => onlineAt),
      jobs.map(({ completed_at: end }) => Date.parse(end ?? '')),
    ),
    ...counted,
  };
}

/** Every job whose event was accepted counts, a moment later. */
async function untilItKnows(
  { client }: BenchEnvironment,
  set: string,
  jobs: number,
): Promise<void> {
  const deadline = Date.now() + PROCESSED_WITHIN_MS;
  for (;;) {
    const { queued } = (await statusOf(client, set)).jobs;
    if (queued === jobs) return;
    if (Date.now() > deadline)
      throw new Error(`the set knows of ${queued} jobs, and ${jobs} were accepted`);
    await delay(100);
  }
}

/** How many runners were online together at the most. */
function mostAtOnce(begins: readonly number[], ends: readonly number[]): number {
  const changes = [
    ...begins.map((at) => ({ at, by: 1 })),
    ...ends.map((at) => ({ at, by: -1 })),
  ].toSorted((a, b) => a.at - b.at);
  let now = 0;
  return changes.reduce((most, { by }) => Math.max(most, (now += by)), 0);
}

/** The set is paused: it counts its jobs, and starts no runner that would take the processors. */
async function measureWebhook(world: BenchEnvironment, url: URL): Promise<Measured> {
  const { client, simulator, progress } = world;
  const set = await startSet(world, 'paused', {
    minIdle: 0,
    max: 1,
    paused: true,
    queueCheck: '0s',
  });
  const [sent] = await simulator.deliveries();
  if (sent === undefined) throw new Error('the simulator has sent no delivery');
  const { workflow_job: job } = sent.payload as { workflow_job: object };
  const payload = {
    ...(sent.payload as object),
    workflow_job: { ...job, labels: ['self-hosted', set] },
  };
  const deliveries = queuedDeliveries(
    payload,
    WARM_UP + ONE_BY_ONE + DELIVERIES,
    1_000_000,
    WEBHOOK_SECRET,
  );
  await deliver(url, deliveries.splice(0, WARM_UP), AT_ONCE);
  progress(`${DELIVERIES} deliveries, ${AT_ONCE} at a time`);
  const alone = await deliver(url, deliveries.splice(0, ONE_BY_ONE), 1);
  const cpu = await world.cpuAccount();
  const { tookMs, allMs } = await deliver(url, deliveries, AT_ONCE);
  const cores = await cpu.close();
  await untilItKnows(world, set, WARM_UP + ONE_BY_ONE + DELIVERIES);
  const { historyLength, runId } = await client.workflow.getHandle(setWorkflowId(set)).describe();
  await client.workflow.getHandle(setWorkflowId(set)).terminate('the benchmark is over');
  const ms = (values: readonly number[], share: number): number =>
    roundTo(percentile(values, share), 1);
  return {
    figures: {
      'webhook.deliveries': DELIVERIES,
      'webhook.perSecond': roundTo(DELIVERIES / (allMs / 1_000)),
      'webhook.p50Ms': ms(tookMs, 0.5),
      'webhook.p95Ms': ms(tookMs, 0.95),
      'webhook.p99Ms': ms(tookMs, 0.99),
    },
    details: {
      cores,
      bytesEach: deliveries[0]?.body.length,
      longestMs: ms(tookMs, 1),
      oneByOneP50Ms: ms(alone.tookMs, 0.5),
      oneByOneP95Ms: ms(alone.tookMs, 0.95),
      lastRun: { runId, historyLength },
    },
  };
}
