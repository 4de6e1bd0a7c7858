/** Record of one job, and the effect of each event on it. Pure. */
import type { JobEvent } from '../../core/contract/index.ts';
import type { CiJob } from '../../core/domain/ciServer.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isLaterState, ciJobStateOf, type CiJobState } from '../../core/domain/ciJobState.ts';

/** Job in one attempt. Times are in ms since the epoch. */
export interface JobRecord {
  readonly state: CiJobState;
  /**
   * Time at which the job was queued, or of the first known event, by the CI server's clock. Never
   * later than the time at which the set received it: a forgotten job makes the set skip earlier
   * events.
   */
  readonly since: number;
  /** Time at which this set last received information about the job, by the workflow's clock. */
  readonly updatedAt: number;
  /** Name at the CI server of the runner that runs or ran the job. */
  readonly runnerName?: string;
  /** Start of the last check of the CI server that found the job queued. */
  readonly confirmedAt?: number;
  /** ID of the workflow run at the CI server. Absent if no event has named it. */
  readonly runId?: string;
  /** `owner/repo`. */
  readonly repository: string;
  /**
   * Workflow id of the set to which the job was rerouted. The job requires no runner of this set.
   * Its events are forwarded to that set.
   */
  readonly reroutedTo?: string;
  /** Whether another set has rerouted the job to this one. */
  readonly reroutedHere?: true;
}

/**
 * Returns the record after an event. Returns the same record if the event contains no new
 * information.
 * @param job - the record before the event, if any
 * @param now - the workflow's clock (ms since the epoch)
 */
export function applyJobEvent(job: JobRecord | undefined, event: JobEvent, now: number): JobRecord {
  const state = ciJobStateOf(event);
  const named =
    event.runnerName === undefined || event.runnerName === ''
      ? {}
      : { runnerName: event.runnerName };
  const passed = event.reroutedBy === undefined ? {} : { reroutedHere: true as const };
  if (job === undefined)
    return {
      state,
      since: Math.min(event.at, now),
      updatedAt: now,
      repository: event.repository,
      ...omitUndefined({ runId: event.runId }),
      ...named,
      ...passed,
    };
  // The job was rerouted to this set, or returned to it: the other set does not serve it.
  if (
    state === 'queued' &&
    event.reroutedBy !== undefined &&
    (job.state === 'left' ||
      (job.state === 'queued' && (job.reroutedTo !== undefined || job.reroutedHere === undefined)))
  ) {
    return { ...omitKey(job, 'reroutedTo'), state, updatedAt: now, reroutedHere: true };
  }
  if (isLaterState(state, job.state))
    return { ...omitKey(job, 'confirmedAt'), state, updatedAt: now, ...named };
  // An event that was overtaken may still be the only one that names the runner.
  if (job.runnerName === undefined && 'runnerName' in named)
    return { ...job, updatedAt: now, ...named };
  return job;
}

/**
 * Returns the record after a check of the CI server found the job queued. The check is older than
 * an event that arrived meanwhile, so a later state is kept.
 * @param checkedAt - start of the check, by the workflow's clock (ms since the epoch)
 */
export function recordQueued(
  job: JobRecord | undefined,
  { queuedAt, repository, runId }: Pick<CiJob, 'queuedAt' | 'repository' | 'runId'>,
  checkedAt: number,
  now: number,
): JobRecord {
  if (job === undefined)
    return {
      state: 'queued',
      since: Math.min(queuedAt, now),
      updatedAt: now,
      confirmedAt: checkedAt,
      repository,
      ...omitUndefined({ runId }),
    };
  if (job.state === 'queued' || (job.state === 'left' && job.updatedAt < checkedAt))
    return { ...job, state: 'queued', updatedAt: now, confirmedAt: checkedAt };
  return job;
}

/**
 * Returns the record after a complete check of the CI server did not find the job: a queued job has
 * left the queue, and a running job has completed. An event may still report where it went.
 */
export function recordUnlisted(job: JobRecord, checkedAt: number, now: number): JobRecord {
  if (job.updatedAt >= checkedAt) return job;
  if (job.state === 'queued')
    return { ...omitKey(job, 'confirmedAt'), state: 'left', updatedAt: now };
  if (job.state === 'assigned') return { ...job, state: 'completed', updatedAt: now };
  return job;
}

/** Returns a copy of the object without this key. */
export function omitKey<T extends object, K extends keyof T>(object: T, key: K): Omit<T, K> {
  const { [key]: _dropped, ...rest } = object;
  return rest;
}
