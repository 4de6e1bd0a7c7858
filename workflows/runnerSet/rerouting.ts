/**
 * Reroutes jobs that a set cannot serve to other sets. A job belongs to another set from the moment
 * that this set has received it, and its later events are forwarded.
 */
import { parseSetWorkflowId, type JobEvent } from '../../core/contract/index.ts';
import type {
  ForwardedJobEvent,
  RerouteJobsInput,
  RerouteJobsResult,
} from '../../core/activities/index.ts';
import { jobKey, parseJobKey } from '../../core/domain/ciJobState.ts';
import { routingInfo } from '../../core/domain/routingInfo.ts';
import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import type { SetStateData } from './carriedState.ts';
import type { JobRecord } from './jobRecord.ts';
import type { SetJobs } from './jobs.ts';
import { jobsOverCapacity, applyLimits, type SetParts } from './size.ts';

/** Maximum number of jobs and of events in one activity. Each has about 100 bytes. */
const BATCH = 1_000;

/**
 * Rerouting of jobs that a set cannot serve. It also keeps the later events of such jobs until they
 * are forwarded.
 */
export class Rerouting {
  /** Events of rerouted jobs, for the sets that have these jobs now. */
  readonly #forwardedEvents: ForwardedJobEvent[];
  /**
   * Keys of the jobs that are being rerouted (`#trying`), and of those that another set has
   * meanwhile rerouted to this set (`#back`).
   */
  readonly #trying = new Set<string>();
  readonly #back = new Set<string>();

  constructor(forwardedEvents: readonly ForwardedJobEvent[] = []) {
    this.#forwardedEvents = [...forwardedEvents];
  }

  carry(): readonly ForwardedJobEvent[] {
    return this.#forwardedEvents;
  }

  /** Drops the events that were not forwarded yet. The other sets find out by their own checks. */
  clear(): void {
    this.#forwardedEvents.length = 0;
  }

  /** Returns the time at which something is to be rerouted or forwarded (ms since the epoch). */
  dueAt(parts: SetParts): number {
    if (this.#forwardedEvents.length > 0) return 0;
    return jobsOverCapacity(parts) === 0 ? Number.POSITIVE_INFINITY : (parts.facts.rerouteAt ?? 0);
  }

  /** Returns the jobs and events to send now. */
  next(parts: SetParts, now: number): RerouteJobsInput {
    const { spec, ending, rerouteAt = 0 } = parts.facts;
    const jobs =
      rerouteAt > now
        ? []
        : parts.jobs.lastQueued(
            Math.min(BATCH, jobsOverCapacity(parts)),
            applyLimits(parts).allowed,
          );
    this.#trying.clear();
    this.#back.clear();
    for (const { key } of jobs) this.#trying.add(key);
    return {
      set: spec.name,
      routing: routingInfo(spec),
      jobs,
      draining: ending !== undefined,
      forwardedEvents: this.#forwardedEvents.slice(0, BATCH),
    };
  }

  /** Applies the result of a rerouting. */
  done(
    tried: RerouteJobsInput,
    { rerouted, substitutes }: RerouteJobsResult,
    { facts, jobs }: { facts: SetStateData; jobs: SetJobs },
    now: number,
  ): void {
    this.#forwardedEvents.splice(0, tried.forwardedEvents.length);
    const repositories = new Map(tried.jobs.map(({ key, repository }) => [key, repository]));
    let count = 0;
    for (const { to, keys } of rerouted) {
      for (const key of keys) {
        // The set that rerouted the job here no longer requires a runner for it, so this set keeps
        // it. Which set did so is not checked, because the job may have passed through several
        // sets.
        if (this.#back.has(key)) continue;
        count++;
        const job = jobs.reroute(key, to, now);
        // An event arrived during the rerouting, and the set that has the job now has not received
        // it.
        if (job?.state !== 'queued')
          this.#handOn(to, eventOf(key, job, repositories.get(key) ?? '', now));
      }
    }
    if (count < tried.jobs.length)
      facts.rerouteAt = now + (substitutes > 0 ? facts.spec.rerouteMs : facts.spec.relistMs);
    else if (count > 0) delete facts.rerouteAt;
  }

  /**
   * Records an event of a job.
   *
   * @param before - the job before the event
   * @param job - the job after the event
   */
  heard(event: JobEvent, before: JobRecord | undefined, job: JobRecord | undefined): void {
    if (
      event.action === 'queued' &&
      event.reroutedBy !== undefined &&
      this.#trying.has(jobKey(event))
    )
      this.#back.add(jobKey(event));
    if (before?.reroutedTo !== undefined && job !== before && event.action !== 'queued')
      this.#handOn(before.reroutedTo, event);
  }

  /**
   * Queues an event for another set, unless the job runs on a runner of that set, which receives
   * the event anyway.
   */
  #handOn(to: string, event: JobEvent): void {
    if (runnerWorkflowIdFromName(parseSetWorkflowId(to), event.runnerName ?? '') === undefined)
      this.#forwardedEvents.push({ to, event });
  }
}

/**
 * Converts the record of a job to an event.
 *
 * @param job - the record; `undefined` if the job has completed
 */
function eventOf(
  key: string,
  job: JobRecord | undefined,
  repository: string,
  now: number,
): JobEvent {
  const event = { ...parseJobKey(key), repository, labels: [], at: job?.since ?? now };
  if (job === undefined || job.state === 'left') return { ...event, action: 'completed' };
  return {
    ...event,
    action: 'in_progress',
    ...(job.runnerName === undefined ? {} : { runnerName: job.runnerName }),
  };
}
