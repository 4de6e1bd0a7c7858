/** What is known of one job, and what each piece of news makes of it. Pure. */
import type { JobEvent } from '../../core/contract/index.ts';
import type { CiJob } from '../../core/domain/ciServer.ts';
import { isLaterState, ciJobStateOf, type CiJobState } from '../../core/domain/ciJobState.ts';

/** One job of one attempt. Times in ms since the epoch. */
export interface JobRecord {
  readonly state: CiJobState;
  /** When it was queued, or the first thing known of it happened, by the CI server's clock. */
  readonly since: number;
  /** When this set last learnt something about it, by the workflow's clock. */
  readonly updatedAt: number;
  /** The runner it runs or ran on, by its name at the CI server. */
  readonly runnerName?: string;
  /** Start of the last look at the CI server that found it queued. */
  readonly confirmedAt?: number;
  /** `owner/repo`. */
  readonly repository: string;
  /** Workflow id of the set that it was passed on to: it asks for nothing here. What is heard of it is passed on, too. */
  readonly reroutedTo?: string;
  /** Another set has passed it on to this one. */
  readonly reroutedHere?: true;
}

/**
 * What is known of a job after an event. The same record when the event says nothing new.
 * @param job - what is known so far, if anything
 * @param now - the workflow's clock
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
      since: event.at,
      updatedAt: now,
      repository: event.repository,
      ...named,
      ...passed,
    };
  // Passed on, or passed back: whoever did so does not serve it.
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
  // An event that was overtaken may still be the only one to name the runner.
  if (job.runnerName === undefined && 'runnerName' in named)
    return { ...job, updatedAt: now, ...named };
  return job;
}

/**
 * What is known of a job after a look at the CI server found it queued. The look is older than an event that came meanwhile: what has
 * gone further since stays.
 * @param checkedAt - when the look began, by the workflow's clock
 */
export function recordQueued(
  job: JobRecord | undefined,
  { queuedAt, repository }: Pick<CiJob, 'queuedAt' | 'repository'>,
  checkedAt: number,
  now: number,
): JobRecord {
  if (job === undefined)
    return { state: 'queued', since: queuedAt, updatedAt: now, confirmedAt: checkedAt, repository };
  if (job.state === 'queued' || (job.state === 'left' && job.updatedAt < checkedAt))
    return { ...job, state: 'queued', updatedAt: now, confirmedAt: checkedAt };
  return job;
}

/**
 * What is known of a job after a look at all jobs of the CI server did not find it: whoever waited has left, and who ran is done.
 * An event may still say where it went.
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
