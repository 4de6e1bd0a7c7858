/** `npm run chaos -- --scale-sets`: kills the workers while GitHub assigns jobs to a scale set. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  setWorkflowId,
} from '../../core/contract/index.ts';
import { openChaosEnvironment, ORGANIZATION, type ChaosEnvironment } from './world.ts';
import { until } from './waitUntil.ts';

/** Options of {@link runScaleSetChaos}. */
export interface ScaleSetChaosOptions {
  readonly seed: number;
  /** Minimum number of jobs. */
  readonly jobs: number;
  /** Number of faults. */
  readonly kills: number;
  /**
   * Fault of the workers. `kill`: all are killed. `cut off`: the worker with the session loses its
   * connection to Temporal, but not to GitHub.
   * @default kill
   */
  readonly fault?: 'kill' | 'cut off';
  /** Minimum time between the starts of two faults (ms). @default 20000 */
  readonly betweenKillsMs?: number;
  /** Minimum time between the continued session and the next fault (ms). @default 0 */
  readonly servedMs?: number;
  /** Interval between two jobs (ms). @default 1000 */
  readonly betweenJobsMs?: number;
  readonly stateDir: string;
  readonly progress: (line: string) => void;
}

/** Result of a run. */
export interface ScaleSetChaosReport {
  readonly fault: 'kill' | 'cut off';
  readonly jobs: number;
  readonly kills: number;
  /** Numbers of sessions opened and continued, and of requests with a conflict (409). */
  readonly sessions: {
    readonly opened: number;
    readonly continued: number;
    readonly conflicts: number;
  };
  /** Time from queued to started (ms). */
  readonly waitMs: Spread;
  /** Time from queued to started, without the time in which no worker was ready (ms). */
  readonly servedWaitMs: Spread;
  /** Times from each fault until a worker was ready again, and until the session was continued. */
  readonly recoveries: readonly Recovery[];
  /** Number of runners started: one for each job, if no runner was unused. */
  readonly runners: number;
  /**
   * Number of registrations created. If a worker dies before it has stored a registration, the
   * registration is removed and created again.
   */
  readonly registrations: number;
  /** Requests to GitHub for each job, without polls. */
  readonly requestsPerJob: number;
  /** Requests to GitHub for each job, by endpoint, without polls. */
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
/** Minimum time between two faults (ms). Without a session, a kill only hits starting workers. */
const BETWEEN_KILLS_MS = 20_000;
const RESTART_AFTER_MS = 1_000;
/** Maximum time until the session is continued (ms). A busy machine starts workers slowly. */
const CONTINUED_WITHIN_MS = 120_000;
/** Duration of a cut (ms). Longer than a worker continues without Temporal. */
const CUT_OFF_MS = 25_000;
/** Metric of the worker that has the session of a scale set. */
const HAS_SESSION = 'holdfast_scaleset_session_up';
const POLL = 'GET /tenant/queue/{id}/{session}';
const CONTINUED = 'sessions/{session} 200';
const OPENED = '/sessions 200';
/** Maximum time that a job may wait for its runner while a worker is ready (ms). */
const MAX_WAIT_MS = 30_000;
const SETTLE_MS = 120_000;

/**
 * Runs jobs on a scale set while its workers fail.
 * @throws Error if the run itself fails
 */
export async function runScaleSetChaos(
  options: ScaleSetChaosOptions,
): Promise<ScaleSetChaosReport> {
  const { seed, stateDir, progress, fault = 'kill' } = options;
  const temporalProxies = fault === 'cut off';
  const world = await openChaosEnvironment({
    seed,
    nodes: 'kwok',
    stateDir,
    progress,
    temporalProxies,
  });
  try {
    await startSet(world);
    await until('a session', async () => world.simulator.scaleSet(SET)?.session !== undefined);
    world.simulator.resetRequests();
    const killing = disturb(world, options);
    const ids = await queueJobs(world, options, killing);
    const isCompleted = (id: number): boolean => world.simulator.job(id)?.status === 'completed';
    await settled('every job to be completed', () => ids.every(isCompleted));
    const outages = await killing;
    await world.workers.ready();
    await settled('every runner to be removed', () => world.simulator.runners().length === 0);
    const areRead = (): boolean => {
      const { unacknowledged, undelivered } = world.simulator.scaleSet(SET) ?? {};
      return unacknowledged === 0 && undelivered === 0;
    };
    await settled('every message to be acknowledged', areRead);
    return { fault, ...judge(world, ids, outages, await runnersStarted(world)) };
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

/** Queues jobs at a constant rate: at least `jobs`, and until the recovery from the last fault. */
async function queueJobs(
  { simulator }: ChaosEnvironment,
  { jobs, betweenJobsMs = BETWEEN_JOBS_MS }: ScaleSetChaosOptions,
  killing: Promise<unknown>,
): Promise<number[]> {
  const ids: number[] = [];
  let haveFaultsEnded = false;
  const faultsEnded = killing.finally(() => (haveFaultsEnded = true));
  faultsEnded.catch(() => undefined); // awaited below
  while (ids.length < jobs || !haveFaultsEnded) {
    const spec = { repo: `${ORGANIZATION}/web`, labels: [LABEL], sleepMs: JOB_MS };
    ids.push(simulator.queueJob(spec).id);
    await delay(betweenJobsMs);
  }
  await faultsEnded;
  return ids;
}

/** Injects the faults one after another, each after the session was continued. */
async function disturb(
  world: ChaosEnvironment,
  {
    kills,
    fault = 'kill',
    betweenKillsMs = BETWEEN_KILLS_MS,
    servedMs = 0,
    progress,
  }: ScaleSetChaosOptions,
): Promise<Outage[]> {
  const outages: Outage[] = [];
  while (outages.length < kills) {
    const { from = Date.now(), continuedMs: tookMs = 0 } = outages.at(-1) ?? {};
    const waitMs = Math.max(betweenKillsMs, tookMs + servedMs);
    await delay(Math.max(0, from + waitMs - Date.now()));
    const outage = fault === 'kill' ? await killOnce(world) : await cutOffHolder(world);
    outages.push(outage);
    const { readyMs, continuedMs } = outage;
    progress(
      `${fault} ${outages.length} of ${kills}: a worker after ${readyMs} ms, the session after ${continuedMs} ms`,
    );
  }
  return outages;
}

/**
 * Returns how often a session was opened or continued. A new one is opened if no worker was ready
 * for a minute, because GitHub has then ended the old one.
 */
function countSessions({ simulator }: ChaosEnvironment): number {
  const { byStatus } = simulator.requestCounts();
  return countOf(byStatus, CONTINUED) + countOf(byStatus, OPENED);
}

/** Cuts off the worker that has the session from Temporal until the other one has continued it. */
async function cutOffHolder(world: ChaosEnvironment): Promise<Outage> {
  const { workers, temporalProxies } = world;
  let holder = -1;
  await until('a worker that has the session', async () => {
    holder = await workers.find(HAS_SESSION);
    return holder >= 0;
  });
  const before = countSessions(world);
  const from = Date.now();
  const restore = temporalProxies[holder]?.cutOff();
  try {
    await until('the session', () => countSessions(world) > before, CONTINUED_WITHIN_MS);
    const continuedMs = Date.now() - from;
    // The other worker was ready during the whole fault.
    await delay(Math.max(0, CUT_OFF_MS - continuedMs));
    return { from, readyMs: 0, continuedMs };
  } finally {
    restore?.();
  }
}

async function killOnce(world: ChaosEnvironment): Promise<Outage> {
  const { workers } = world;
  const numbers = Array.from({ length: workers.count }, (_none, number) => number);
  await Promise.all(numbers.map(async (number) => await workers.stop(number, 'SIGKILL')));
  const before = countSessions(world);
  const from = Date.now();
  await delay(RESTART_AFTER_MS);
  for (const number of numbers) workers.start(number);
  await workers.anyReady();
  const readyMs = Date.now() - from;
  await until('a session', () => countSessions(world) > before, CONTINUED_WITHIN_MS);
  return { from, readyMs, continuedMs: Date.now() - from };
}

/** Returns the number of requests whose endpoint and status end with the text. */
function countOf(byStatus: Readonly<Record<string, number>>, ending: string): number {
  return Object.entries(byStatus)
    .filter(([key]) => key.endsWith(ending))
    .reduce((sum, [, times]) => sum + times, 0);
}

async function settled(what: string, holds: () => boolean): Promise<void> {
  await until(what, async () => holds(), SETTLE_MS);
}

/** Returns the number of runner workflows of the set, ended ones included. */
async function runnersStarted({ client, name }: ChaosEnvironment): Promise<number> {
  const { count } = await client.workflow.count(
    `WorkflowType = '${RUNNER_WORKFLOW}' AND TaskQueue = '${name}' AND ${SEARCH_ATTRIBUTES.set.name} = '${SET}'`,
  );
  return count;
}

function judge(
  { simulator }: ChaosEnvironment,
  ids: readonly number[],
  outages: readonly Outage[],
  runners: number,
): Omit<ScaleSetChaosReport, 'fault'> {
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
    runners,
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
      ...(runners <= ids.length ? [] : [`${runners} runners for ${ids.length} jobs`]),
    ],
  };
}

/** Returns the part of a wait in which a worker was ready (ms). */
export function servedMs(
  { from, to }: { readonly from: number; readonly to: number },
  outages: readonly Pick<Outage, 'from' | 'readyMs'>[],
): number {
  const unavailable = outages.map((outage) =>
    Math.max(0, Math.min(to, outage.from + outage.readyMs) - Math.max(from, outage.from)),
  );
  return to - from - unavailable.reduce((sum, ms) => sum + ms, 0);
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), max: at(1) };
}

const FAULTS = {
  kill: 'all workers were killed',
  'cut off': 'the worker with the session was cut off from Temporal',
} as const;

/** Formats the report. */
export function scaleSetLines(report: ScaleSetChaosReport): string[] {
  const { sessions, waitMs, servedWaitMs, violations } = report;
  return [
    `${report.jobs} jobs, ${report.kills} times ${FAULTS[report.fault]}`,
    `sessions: ${sessions.opened} opened, ${sessions.continued} continued, ${sessions.conflicts} conflicts`,
    `from queued to started: p50 ${waitMs.p50} ms, p95 ${waitMs.p95} ms, max ${waitMs.max} ms`,
    `while a worker was ready: p50 ${servedWaitMs.p50} ms, p95 ${servedWaitMs.p95} ms, max ${servedWaitMs.max} ms`,
    `runners: ${report.runners}; registrations: ${report.registrations}; requests to GitHub for each job, without polls: ${report.requestsPerJob}`,
    ...Object.entries(report.requestsByEndpoint).map(
      ([endpoint, count]) => `  ${count} ${endpoint}`,
    ),
    violations.length === 0 ? 'no violations' : `${violations.length} violations:`,
    ...violations.map((each) => `  ${each}`),
  ];
}
