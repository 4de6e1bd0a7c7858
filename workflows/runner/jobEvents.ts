/** The jobs of one runner, by the CI server's events: which one runs, and which are over. Their order is that of core/domain/ciJobState.ts. Pure. */
import { scopeHolds, type Scope } from '../../core/domain/ciServer.ts';
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
  /** Keys of completed jobs, the latest last. */
  readonly completed: readonly string[];
  /** The latest time of any event, by the CI server's clock (ms since the epoch). */
  readonly latestEventAt: number;
}

/** Job that a runner runs. */
export interface RunningJob {
  readonly key: string;
  /** Name and ID of the job, for display. */
  readonly label: string;
}

/** State of a runner before its first job event. */
export const NO_JOBS: RunnerJobs = { completed: [], latestEventAt: 0 };

/** A static runner lives for months: an event of a job that is longer over than this is known by its time. */
const MAX_OVER = 100;
/** Times of the CI server that are no further apart have no order: it has more than one clock, and tells whole seconds. */
const SAME_MOMENT_MS = 5_000;

/**
 * What is known after an event of a job of this runner. The same object when the event says nothing new.
 *
 * A runner runs one job at a time: a job that starts ends the one before it, whose own end was not told yet or never will be; and a job that
 * started before something else that is known is over itself.
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
    running: { key, label: `${event.jobName ?? 'job'} (${jobId})` },
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

/** Whether it is about this runner. Another scope's may have the same name, also with the same App. @param scope - absent: not compared */
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
