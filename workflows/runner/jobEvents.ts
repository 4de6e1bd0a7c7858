/**
 * Jobs of one runner according to the CI server's events: which one runs, and which have completed.
 * Their order is defined in core/domain/ciJobState.ts. Pure.
 */
import { scopeHolds, type Scope } from '../../core/domain/ciServer.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { MAX_CLOCK_SKEW_MS } from '../../core/domain/podConditions.ts';
import type { RunnerJobEvent } from '../../core/contract/index.ts';
import {
  isLaterState,
  jobKey,
  ciJobStateOf,
  type CiJobState,
} from '../../core/domain/ciJobState.ts';

/** Jobs of one runner according to the CI server's events. */
export interface RunnerJobs {
  /** Running job, as far as events report it. */
  readonly running?: RunningJob;
  /** Keys of completed jobs, most recent last. */
  readonly completed: readonly string[];
  /** Latest time of any event, by the CI server's clock (ms since the epoch). */
  readonly latestEventAt: number;
}

/** Job that a runner runs. */
export interface RunningJob {
  readonly key: string;
  /** Name and ID of the job, for display. */
  readonly label: string;
  /** Repository of the job, `owner/repo`, if the event names it. */
  readonly repository?: string;
}

/** State of a runner before its first job event. */
export const NO_JOBS: RunnerJobs = { completed: [], latestEventAt: 0 };

/**
 * Maximum number of completed jobs to remember. A static runner runs for months. An event about a
 * job that completed earlier is recognized by its time.
 */
const MAX_OVER = 100;
/**
 * Maximum difference between two times of the CI server that have no order (ms). It has more than
 * one clock and reports whole seconds.
 */
const SAME_MOMENT_MS = 5_000;

/**
 * Limits the time of an event to what different clocks can explain. After an event with a time of
 * the future, every later one would look overtaken.
 *
 * @param nowMs - time of the receipt (ms since the epoch)
 */
export function limitEventTime(event: RunnerJobEvent, nowMs: number): RunnerJobEvent {
  return event.at === undefined
    ? event
    : { ...event, at: Math.min(event.at, nowMs + MAX_CLOCK_SKEW_MS) };
}

/**
 * Returns the jobs after an event about a job of this runner. Returns the same object if the event
 * contains no new information.
 *
 * A runner runs one job at a time. A job that starts therefore ends the previous job, whose own end
 * may not have been reported yet or may never be. A job that started before another known event has
 * itself completed.
 */
export function trackJobEvent(jobs: RunnerJobs, event: RunnerJobEvent): RunnerJobs {
  const { action, jobId, runAttempt = 1, at } = event;
  const key = jobKey({ jobId, runAttempt });
  if (action === 'queued' || !isLaterState(ciJobStateOf(event), stateOfJob(jobs, key))) return jobs;
  const latestEventAt = Math.max(jobs.latestEventAt, at ?? 0);
  const { running } = jobs;
  const overtaken = at !== undefined && at < jobs.latestEventAt - SAME_MOMENT_MS;
  if (action === 'completed' || overtaken)
    return {
      ...(running === undefined || running.key === key ? {} : { running }),
      completed: withCompleted(jobs, key),
      latestEventAt,
    };
  return {
    running: {
      key,
      label: `${event.jobName ?? 'job'} (${jobId})`,
      ...omitUndefined({ repository: event.repository }),
    },
    completed: running === undefined ? jobs.completed : withCompleted(jobs, running.key),
    latestEventAt,
  };
}

function stateOfJob({ running, completed }: RunnerJobs, key: string): CiJobState | undefined {
  if (completed.includes(key)) return 'completed';
  return running?.key === key ? 'assigned' : undefined;
}

function withCompleted({ completed }: RunnerJobs, key: string): readonly string[] {
  return [...completed, key].slice(-MAX_OVER);
}

/**
 * Whether an event is about this runner. A runner of another scope may have the same name, even
 * with the same App.
 *
 * @param scope - scope to compare; not compared if absent
 */
export function concernsRunner(
  event: RunnerJobEvent,
  runnerName: string,
  runnerId: string | undefined,
  scope?: Scope,
): boolean {
  return (
    (event.repository === undefined ||
      scope === undefined ||
      scopeHolds(scope, event.repository)) &&
    (event.runnerName ?? runnerName) === runnerName &&
    (event.runnerId === undefined || runnerId === undefined || event.runnerId === runnerId)
  );
}
