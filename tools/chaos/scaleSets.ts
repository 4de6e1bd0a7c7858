/** `npm run chaos -- --scale-sets`: kills the workers while GitHub assigns jobs to a scale set. */
import { setTimeout as delay } from 'node:timers/promises';
import { RUNNER_SET_WORKFLOW, setWorkflowId } from '../../core/contract/index.ts';
import { openChaosEnvironment, ORGANIZATION, type ChaosEnvironment } from './world.ts';
import { until } from './waitUntil.ts';

export interface ScaleSetChaosOptions {
  readonly seed: number;
  readonly jobs: number;
  readonly kills: number;
  readonly stateDir: string;
  readonly progress: (line: string) => void;
}

/** What was seen, and what must not have been. */
export interface ScaleSetChaosReport {
  readonly jobs: number;
  readonly kills: number;
  /** Sessions opened and continued, and requests that met a conflict. */
  readonly sessions: {
    readonly opened: number;
    readonly continued: number;
    readonly conflicts: number;
  };
  /** From queued to started (ms). */
  readonly waitMs: Spread;
  /** The same without the time in which no worker was ready. */
  readonly servedWaitMs: Spread;
  /** From each kill until a worker was ready again, and until the session was continued (ms). */
  readonly recoveries: readonly Recovery[];
  /** Registrations made; one for each job if there is no spare runner. */
  readonly registrations: number;
  /** Requests to GitHub for each job, polls left out. */
  readonly requestsPerJob: number;
  /** The same by endpoint. */
  readonly requestsByEndpoint: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

interface Spread {
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
}

interface Recovery {
  readonly readyMs: number;
  readonly continuedMs: number;
}

/** Time in which no worker was ready (ms since the epoch). */
interface Outage extends Recovery {
  readonly from: number;
}

const SET = 'scale';
const LABEL = 'chaos-scale';
const JOB_MS = 2_000;
const BETWEEN_JOBS_MS = 1_000;
/** At least. A kill before the session is continued would only meet workers that still start. */
const BETWEEN_KILLS_MS = 20_000;
const RESTART_AFTER_MS = 1_000;
/** A busy machine takes long to start a worker. */
const CONTINUED_WITHIN_MS = 120_000;
const POLL = 'GET /tenant/queue/{id}/{session}';
const CONTINUED = 'sessions/{session} 200';
const OPENED = '/sessions 200';
/** No job may wait for its runner for longer while a worker is ready. */
const MAX_WAIT_MS = 30_000;
const SETTLE_MS = 120_000;

/** @throws Error when the run itself fails */
export async function runScaleSetChaos(
  options: ScaleSetChaosOptions,
): Promise<ScaleSetChaosReport> {
  const { seed, stateDir, progress, jobs, kills } = options;
  const world = await openChaosEnvironment({ seed, nodes: 'kwok', stateDir, progress });
  try {
    await startSet(world);
    await until('a session', async () => world.simulator.scaleSet(SET)?.session !== undefined);
    world.simulator.resetRequests();
    const killing = killWorkers(world, kills, progress);
    const ids = await queueJobs(world, jobs, killing);
    const isOver = (id: number): boolean => world.simulator.job(id)?.status === 'completed';
    await settled('every job to be over', () => ids.every(isOver));
    const outages = await killing;
    await world.workers.ready();
    await settled('no runner to be left', () => world.simulator.runners().length === 0);
    const areRead = (): boolean => {
      const { unacknowledged, undelivered } = world.simulator.scaleSet(SET) ?? {};
      return unacknowledged === 0 && undelivered === 0;
    };
    await settled('every message to be acknowledged', areRead);
    return judge(world, ids, outages);
  } finally {
    await world.close();
  }
}

async function startSet({ client, name }: ChaosEnvironment): Promise<void> {
  await client.workflow.start(RUNNER_SET_WORKFLOW, {
    workflowId: setWorkflowId(SET),
    taskQueue: name,
    args: [
      {
        name: SET,
        max: 60,
        scaleDownDelay: '5s',
        template: { organization: ORGANIZATION, labels: [LABEL], demand: 'scaleSet' },
      },
    ],
  });
}

/** Queues jobs at a constant pace: at least `count`, and until the last kill is overcome. */
async function queueJobs(
  { simulator }: ChaosEnvironment,
  count: number,
  killing: Promise<unknown>,
): Promise<number[]> {
  const ids: number[] = [];
  let areOver = false;
  const over = killing.finally(() => (areOver = true));
  over.catch(() => undefined); // awaited below
  while (ids.length < count || !areOver) {
    const spec = { repo: `${ORGANIZATION}/web`, labels: [LABEL], sleepMs: JOB_MS };
    ids.push(simulator.queueJob(spec).id);
    await delay(BETWEEN_JOBS_MS);
  }
  await over;
  return ids;
}

/** Kills all workers at once, again and again, each time after there is a session again. */
async function killWorkers(
  world: ChaosEnvironment,
  kills: number,
  progress: (line: string) => void,
): Promise<Outage[]> {
  const outages: Outage[] = [];
  while (outages.length < kills) {
    const last = outages.at(-1)?.from ?? Date.now();
    await delay(Math.max(0, last + BETWEEN_KILLS_MS - Date.now()));
    const outage = await killOnce(world);
    outages.push(outage);
    const { readyMs, continuedMs } = outage;
    progress(
      `kill ${outages.length} of ${kills}: a worker after ${readyMs} ms, the session after ${continuedMs} ms`,
    );
  }
  return outages;
}

async function killOnce({ workers, simulator }: ChaosEnvironment): Promise<Outage> {
  const numbers = Array.from({ length: workers.count }, (_none, number) => number);
  // Where no worker came up for a minute, GitHub has ended the session, and it is opened again.
  const held = (): number => {
    const { byStatus } = simulator.requestCounts();
    return countOf(byStatus, CONTINUED) + countOf(byStatus, OPENED);
  };
  await Promise.all(numbers.map(async (number) => await workers.stop(number, 'SIGKILL')));
  const before = held();
  const from = Date.now();
  await delay(RESTART_AFTER_MS);
  for (const number of numbers) workers.start(number);
  await workers.anyReady();
  const readyMs = Date.now() - from;
  await until('a session', () => held() > before, CONTINUED_WITHIN_MS);
  return { from, readyMs, continuedMs: Date.now() - from };
}

/** Requests whose endpoint, with the status, ends so. */
function countOf(byStatus: Readonly<Record<string, number>>, ending: string): number {
  return Object.entries(byStatus)
    .filter(([key]) => key.endsWith(ending))
    .reduce((sum, [, times]) => sum + times, 0);
}

async function settled(what: string, isSo: () => boolean): Promise<void> {
  await until(what, async () => isSo(), SETTLE_MS);
}

function judge(
  { simulator }: ChaosEnvironment,
  ids: readonly number[],
  outages: readonly Outage[],
): ScaleSetChaosReport {
  const { byStatus, byEndpoint } = simulator.requestCounts();
  const jobs = ids.flatMap((id) => simulator.job(id) ?? []);
  const times = jobs.map(({ created_at: queued, started_at: started }) => ({
    from: Date.parse(queued),
    to: Date.parse(started ?? ''),
  }));
  const served = times.map((wait) => servedMs(wait, outages));
  const requests = Object.entries(byEndpoint).filter(([endpoint]) => endpoint !== POLL);
  const perJob = (count: number): number => Math.round((100 * count) / ids.length) / 100;
  const registrations = countOf(byStatus, '/generatejitconfig 200');
  const conflicts = countOf(byStatus, '/sessions 409');
  return {
    jobs: ids.length,
    kills: outages.length,
    sessions: {
      opened: countOf(byStatus, OPENED),
      continued: countOf(byStatus, CONTINUED),
      conflicts,
    },
    waitMs: spreadOf(times.map(({ from, to }) => to - from)),
    servedWaitMs: spreadOf(served),
    recoveries: outages.map(({ readyMs, continuedMs }) => ({ readyMs, continuedMs })),
    registrations,
    requestsPerJob: perJob(requests.reduce((sum, [, count]) => sum + count, 0)),
    requestsByEndpoint: Object.fromEntries(
      requests.map(([endpoint, count]) => [endpoint, perJob(count)]),
    ),
    violations: [
      ...jobs
        .filter(({ conclusion }) => conclusion !== 'success')
        .map(({ id, conclusion }) => `job ${id} ended as ${conclusion}`),
      ...served
        .filter((wait) => !(wait <= MAX_WAIT_MS))
        .map((wait) => `a job waited for its runner for ${wait} ms while a worker was ready`),
      ...(conflicts === 0 ? [] : [`${conflicts} conflicts about the session`]),
      ...(registrations <= ids.length
        ? []
        : [`${registrations} registrations for ${ids.length} jobs`]),
    ],
  };
}

/** Returns the part of a wait in which a worker was ready (ms). */
export function servedMs(
  { from, to }: { readonly from: number; readonly to: number },
  outages: readonly Pick<Outage, 'from' | 'readyMs'>[],
): number {
  const away = outages.map((outage) =>
    Math.max(0, Math.min(to, outage.from + outage.readyMs) - Math.max(from, outage.from)),
  );
  return to - from - away.reduce((sum, ms) => sum + ms, 0);
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), max: at(1) };
}

/** Lines for people. */
export function scaleSetLines(report: ScaleSetChaosReport): string[] {
  const { sessions, waitMs, servedWaitMs, violations } = report;
  return [
    `${report.jobs} jobs, ${report.kills} kills of all workers`,
    `sessions: ${sessions.opened} opened, ${sessions.continued} continued, ${sessions.conflicts} conflicts`,
    `from queued to started: p50 ${waitMs.p50} ms, p95 ${waitMs.p95} ms, max ${waitMs.max} ms`,
    `while a worker was ready: p50 ${servedWaitMs.p50} ms, p95 ${servedWaitMs.p95} ms, max ${servedWaitMs.max} ms`,
    `registrations: ${report.registrations}; requests to GitHub for each job, without polls: ${report.requestsPerJob}`,
    ...Object.entries(report.requestsByEndpoint).map(
      ([endpoint, count]) => `  ${count} ${endpoint}`,
    ),
    violations.length === 0 ? 'no violations' : `${violations.length} violations:`,
    ...violations.map((each) => `  ${each}`),
  ];
}
