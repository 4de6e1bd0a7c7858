/** Jobs that a set cannot serve, in other sets: each is another's from the moment that it has it, and what is heard of it is handed on. */
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

/** Jobs and pieces of news in one activity: each is some 100 bytes. */
const BATCH = 1_000;

/**
 * Rerouting of jobs that a set cannot serve. It also keeps the later events of such jobs until they
 * are forwarded.
 */
export class Rerouting {
  /** News of jobs that were passed on, for the sets that have them. */
  readonly #forwardedEvents: ForwardedJobEvent[];
  /** Keys of the jobs that are being passed on, and of those the ones that another set has meanwhile passed to this one. */
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

  /** @returns when something is to be passed on (ms since the epoch) */
  dueAt(parts: SetParts): number {
    if (this.#forwardedEvents.length > 0) return 0;
    return jobsOverCapacity(parts) === 0 ? Number.POSITIVE_INFINITY : (parts.facts.rerouteAt ?? 0);
  }

  /** What is to be passed on now. */
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

  /** It was tried. */
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
        // Whoever has passed it here asks for no runner any more. Who did is not asked: it may have gone through several sets.
        if (this.#back.has(key)) continue;
        count++;
        const job = jobs.reroute(key, to, now);
        // Heard of while it was under way: whoever has it now has not.
        if (job?.state !== 'queued')
          this.#handOn(to, eventOf(key, job, repositories.get(key) ?? '', now));
      }
    }
    if (count < tried.jobs.length)
      facts.rerouteAt = now + (substitutes > 0 ? facts.spec.rerouteMs : facts.spec.relistMs);
    else if (count > 0) delete facts.rerouteAt;
  }

  /** Something was heard of a job. @param before - what was known of it */
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

  /** The set whose runner runs the job hears of it anyway. */
  #handOn(to: string, event: JobEvent): void {
    if (runnerWorkflowIdFromName(parseSetWorkflowId(to), event.runnerName ?? '') === undefined)
      this.#forwardedEvents.push({ to, event });
  }
}

/** What is known of a job, as news; `undefined`: it is over. */
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
