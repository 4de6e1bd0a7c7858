/** Metrics of runner sets and of their jobs. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { RunnerSetStatus, SetRunnerStatus } from '../../core/contract/index.ts';
import { versionDeadlineMs } from '../../core/domain/runnerVersion.ts';
import type { JobDelivery } from './jobDelivery.ts';

const runnersIn =
  (...states: SetRunnerStatus['state'][]) =>
  ({ runnerCounts }: RunnerSetStatus): number =>
    states.reduce((sum, state) => sum + runnerCounts[state], 0);

/** Metrics by name. Those with `_total` in their name are counters, the others gauges. */
const METRICS: readonly (readonly [
  name: string,
  help: string,
  value: (status: RunnerSetStatus) => number,
])[] = [
  [
    'holdfast_set_assigned_jobs',
    'Jobs that the set has to serve: queued, or in progress',
    ({ jobs }) => jobs.queued + jobs.running,
  ],
  ['holdfast_set_queued_jobs', 'Jobs of the set that wait for a runner', ({ jobs }) => jobs.queued],
  ['holdfast_set_running_jobs', 'Jobs of the set that are in progress', ({ jobs }) => jobs.running],
  ['holdfast_set_desired_runners', 'Runners that the set wants now', ({ desired }) => desired],
  ['holdfast_set_min_runners', 'Least runners, or idle runners, of the set', ({ min }) => min],
  ['holdfast_set_max_runners', 'Most runners of the set', ({ max }) => max],
  [
    'holdfast_set_starting_runners',
    'Runners of the set that are not online yet',
    runnersIn('starting'),
  ],
  [
    'holdfast_set_registered_runners',
    'Runners of the set that are online: idle, busy or draining',
    runnersIn('idle', 'busy', 'draining'),
  ],
  [
    'holdfast_set_idle_runners',
    'Runners of the set that are online without a job',
    runnersIn('idle'),
  ],
  ['holdfast_set_busy_runners', 'Runners of the set that run a job', runnersIn('busy')],
  [
    'holdfast_set_draining_runners',
    'Runners of the set that leave, after their job if they have one',
    runnersIn('draining'),
  ],
  [
    'holdfast_set_start_blocked',
    '1 while the set starts no runner (paused, breaker, …), else 0',
    ({ blockedReason }) => (blockedReason === undefined ? 0 : 1),
  ],
  [
    'holdfast_set_queue_check_incomplete',
    "1 while the last check of the CI server's job list was incomplete, else 0",
    ({ queueCheck }) => (queueCheck === undefined ? 0 : 1),
  ],
  [
    'holdfast_set_runner_list_pending_seconds',
    "Time for which the set has awaited a list of its runners from Temporal's visibility, 0 if it awaits none",
    ({ listPendingSince }) =>
      listPendingSince === undefined
        ? 0
        : Math.max(0, (Date.now() - Date.parse(listPendingSince)) / 1_000),
  ],
  [
    'holdfast_set_runner_version_deadline_seconds',
    'Time from which the CI server refuses the runner version of the set (seconds since the epoch), 0 if none is known',
    ({ runnerVersion }) => (versionDeadlineMs(runnerVersion) ?? 0) / 1_000,
  ],
  [
    'holdfast_set_limited_jobs',
    'Queued jobs for which limits of the set start no runner',
    ({ limited }) => limited?.jobs ?? 0,
  ],
  [
    'holdfast_set_limited_runners',
    'Runners that the set starts no more today, because its maxRunnerHours are used up',
    ({ limited }) => limited?.runners ?? 0,
  ],
  [
    'holdfast_set_rerouted_jobs',
    'Queued jobs that other sets have, because the set could not serve them',
    ({ rerouted }) => rerouted ?? 0,
  ],
  [
    'holdfast_set_started_jobs_total',
    'Jobs of the set that a runner began',
    ({ jobs }) => jobs.startedTotal,
  ],
  [
    'holdfast_set_completed_jobs_total',
    'Jobs of the set that were completed',
    ({ jobs }) => jobs.completedTotal,
  ],
];

const STARTUP_SECONDS = [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600];
const EXECUTION_SECONDS = [
  1, 5, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600, 86_400,
];

/**
 * Registers metrics from the status of each set, queried at each scrape. Every replica reports the
 * same: aggregate with `max by (set)`.
 * @param statuses - never throws
 */
export function registerSetMetrics(
  registry: Registry,
  statuses: () => Promise<readonly RunnerSetStatus[]>,
): void {
  for (const [name, help, value] of METRICS) {
    const Metric = name.endsWith('_total') ? Counter : Gauge;
    const metric: Gauge | Counter = new Metric({
      name,
      help,
      labelNames: ['set', 'scope'],
      registers: [registry],
      // The set counts, so the numbers continue when another process reports them.
      collect: async () => {
        const all = await statuses();
        metric.reset();
        for (const status of all)
          metric.inc({ set: status.name, scope: status.scope }, value(status));
      },
    });
  }
}

/**
 * Registers the age of the list of sets by which job events are routed. It grows while visibility
 * is unavailable.
 */
export function registerRoutingAge(registry: Registry, ageMs: () => number | undefined): void {
  const age: Gauge = new Gauge({
    name: 'holdfast_webhook_set_list_age_seconds',
    help: 'Age of the list of sets by which job events are routed, 0 before the first one',
    registers: [registry],
    collect: () => age.set((ageMs() ?? 0) / 1_000),
  });
}

/**
 * Registers metrics of how long jobs waited and ran, from the events of the webhook.
 * @returns a function that takes each event of a job that a runner of a set runs
 */
export function createJobDurations(registry: Registry): (set: string, job: JobDelivery) => void {
  const registers = [registry];
  const startup = new Histogram({
    name: 'holdfast_job_startup_duration_seconds',
    help: 'From queued to in progress, of jobs that a runner of the set ran',
    labelNames: ['set'],
    buckets: STARTUP_SECONDS,
    registers,
  });
  const execution = new Histogram({
    name: 'holdfast_job_execution_duration_seconds',
    help: 'From in progress to completed, of jobs that a runner of the set ran',
    labelNames: ['set', 'conclusion'],
    buckets: EXECUTION_SECONDS,
    registers,
  });
  return (set, { event, startupMs, executionMs }) => {
    if (startupMs !== undefined) startup.observe({ set }, startupMs / 1_000);
    if (executionMs !== undefined)
      execution.observe({ set, conclusion: known(event.conclusion) }, executionMs / 1_000);
  };
}

/** Values of the label: GitHub's conclusions. A label must have few values. */
const CONCLUSIONS = [
  'success',
  'failure',
  'cancelled',
  'skipped',
  'timed_out',
  'neutral',
  'action_required',
];
const known = (conclusion = 'none'): string =>
  CONCLUSIONS.includes(conclusion) ? conclusion : 'other';
