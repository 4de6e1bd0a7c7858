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
  readonly waitMs: { readonly p50: number; readonly p95: number; readonly max: number };
  /** Registrations made; one for each job if there is no spare runner. */
  readonly registrations: number;
  /** Requests to GitHub for each job, polls left out. */
  readonly requestsPerJob: number;
  readonly violations: readonly string[];
}

const SET = 'scale';
const LABEL = 'chaos-scale';
const JOB_MS = 2_000;
const BETWEEN_JOBS_MS = 1_000;
const BETWEEN_KILLS_MS = 20_000;
const RESTART_AFTER_MS = 1_000;
/** No job may wait for its runner for longer. */
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
    const stop = new AbortController();
    const killing = killWorkers(world, kills, stop.signal, progress);
    const ids = await queueJobs(world, jobs);
    const isOver = (id: number): boolean => world.simulator.job(id)?.status === 'completed';
    await settled('every job to be over', () => ids.every(isOver));
    stop.abort();
    const killed = await killing;
    await world.workers.ready();
    await settled('no runner to be left', () => world.simulator.runners().length === 0);
    const areRead = (): boolean => {
      const { unacknowledged, undelivered } = world.simulator.scaleSet(SET) ?? {};
      return unacknowledged === 0 && undelivered === 0;
    };
    await settled('every message to be acknowledged', areRead);
    return judge(world, ids, killed);
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

async function queueJobs({ simulator }: ChaosEnvironment, count: number): Promise<number[]> {
  const ids: number[] = [];
  while (ids.length < count) {
    const spec = { repo: `${ORGANIZATION}/web`, labels: [LABEL], sleepMs: JOB_MS };
    ids.push(simulator.queueJob(spec).id);
    await delay(BETWEEN_JOBS_MS);
  }
  return ids;
}

/** Kills all workers at once, again and again, so that a session is continued each time. @returns how often */
async function killWorkers(
  { workers }: ChaosEnvironment,
  kills: number,
  stop: AbortSignal,
  progress: (line: string) => void,
): Promise<number> {
  const numbers = Array.from({ length: workers.count }, (_none, number) => number);
  let done = 0;
  while (done < kills && !stop.aborted) {
    await delay(BETWEEN_KILLS_MS, undefined, { signal: stop }).catch(() => undefined);
    if (stop.aborted) break;
    await Promise.all(numbers.map(async (number) => await workers.stop(number, 'SIGKILL')));
    done++;
    progress(`kill ${done} of ${kills}`);
    await delay(RESTART_AFTER_MS);
    for (const number of numbers) workers.start(number);
  }
  return done;
}

async function settled(what: string, isSo: () => boolean): Promise<void> {
  await until(what, async () => isSo(), SETTLE_MS);
}

function judge(
  { simulator }: ChaosEnvironment,
  ids: readonly number[],
  kills: number,
): ScaleSetChaosReport {
  const { byStatus, byEndpoint } = simulator.requestCounts();
  const count = (ending: string): number =>
    Object.entries(byStatus)
      .filter(([key]) => key.endsWith(ending))
      .reduce((sum, [, times]) => sum + times, 0);
  const jobs = ids.flatMap((id) => simulator.job(id) ?? []);
  const waits = jobs
    .map((job) => Date.parse(job.started_at ?? '') - Date.parse(job.created_at))
    .toSorted((a, b) => a - b);
  const at = (share: number): number =>
    waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? Number.NaN;
  const polls = byEndpoint['GET /tenant/queue/{id}/{session}'] ?? 0;
  const total = Object.values(byEndpoint).reduce((sum, times) => sum + times, 0);
  const registrations = count('/generatejitconfig 200');
  const conflicts = count('/sessions 409');
  return {
    jobs: ids.length,
    kills,
    sessions: {
      opened: count('/sessions 200'),
      continued: count('/sessions/{session} 200'),
      conflicts,
    },
    waitMs: { p50: at(0.5), p95: at(0.95), max: at(1) },
    registrations,
    requestsPerJob: Math.round((100 * (total - polls)) / ids.length) / 100,
    violations: [
      ...jobs
        .filter(({ conclusion }) => conclusion !== 'success')
        .map(({ id, conclusion }) => `job ${id} ended as ${conclusion}`),
      ...waits
        .filter((wait) => !(wait <= MAX_WAIT_MS))
        .map((wait) => `a job waited for its runner for ${wait} ms`),
      ...(conflicts === 0 ? [] : [`${conflicts} conflicts about the session`]),
      ...(registrations <= ids.length
        ? []
        : [`${registrations} registrations for ${ids.length} jobs`]),
    ],
  };
}

/** Lines for people. */
export function scaleSetLines(report: ScaleSetChaosReport): string[] {
  const { sessions, waitMs, violations } = report;
  return [
    `${report.jobs} jobs, ${report.kills} kills of all workers`,
    `sessions: ${sessions.opened} opened, ${sessions.continued} continued, ${sessions.conflicts} conflicts`,
    `from queued to started: p50 ${waitMs.p50} ms, p95 ${waitMs.p95} ms, max ${waitMs.max} ms`,
    `registrations: ${report.registrations}; requests to GitHub for each job, without polls: ${report.requestsPerJob}`,
    violations.length === 0 ? 'no violations' : `${violations.length} violations:`,
    ...violations.map((each) => `  ${each}`),
  ];
}
