/**
 * All jobs that a set knows of, in whatever order their events come: that of core/domain/ciJobState.ts counts. Bounded: jobs that are over are
 * forgotten after a time, and in any case when they are many.
 */
import type { ListedRunner } from '../../core/activities/index.ts';
import type { JobEvent } from '../../core/contract/index.ts';
import type { CiJobList } from '../../core/domain/ciServer.ts';
import { jobKey } from '../../core/domain/ciJobState.ts';
import { DEFAULT_JOB_LIMITS, type CiJobLimits } from '../../core/domain/ciServerTraits.ts';
import {
  decodeCompleted,
  decodeJobs,
  encodeCompleted,
  encodeJobs,
  type CarriedJobs,
} from './carriedJobs.ts';
import { RunningJobs } from './runningJobs.ts';
import { JobTraces } from './jobTraces.ts';
import {
  applyJobEvent,
  recordUnlisted,
  recordQueued,
  omitKey,
  type JobRecord,
} from './jobRecord.ts';
import type { JobCount } from './limits.ts';
import {
  countByRepository,
  lastQueued,
  staleJobs,
  isRerouted,
  isQueuedHere,
} from './waitingJobs.ts';

/** So long a job that is over is remembered, unless more than {@link MAX_OVER_JOBS} are over since. */
const FORGET_MS = 6 * 3_600_000;
/** Jobs that are not over. More than this are not taken in: a look at the CI server finds them when there is room. */
export const MAX_ACTIVE_JOBS = 10_000;
const MAX_OVER_JOBS = 20_000;
/** A CI server's list may not know yet what its webhook has told already. */
const LIST_LAG_MS = 10_000;
/** So long after a job's event its runner is listed as busy: its pod tells within seconds, and visibility may be some more behind. */
export const BUSY_LAG_MS = 30_000;

/** What a look says of jobs that it does not list, by their keys. */
interface JobsElsewhere {
  /** They were listed in a part before this one. @default none */
  readonly listed?: readonly string[];
  /** They neither wait nor run. @default none */
  readonly absent?: readonly string[];
}

/** Jobs that a set knows. It is updated by job events, checks of the CI server and runner lists. */
export class SetJobs {
  readonly #name: string;
  readonly #live = new Map<string, JobRecord>();
  /** Of the live ones, those that are assigned and those that a look found queued: what is asked for after every event must not cost a walk over all. */
  readonly #assigned: RunningJobs;
  readonly #confirmed = new Map<string, number>();
  #queued = 0;
  #reroutedCount = 0;
  readonly traces: JobTraces;
  /** Key to the time it was over; oldest first. */
  readonly #over = new Map<string, number>();
  /** Jobs that were over by then, or were queued by then and of which nobody ever told more, may be forgotten. */
  #droppedUntil = 0;
  startedTotal = 0;
  completedTotal = 0;
  /** How long a job of which nothing more is heard can still be under way. */
  limits: CiJobLimits = DEFAULT_JOB_LIMITS;

  constructor(set: string, carried?: CarriedJobs) {
    this.#name = set;
    this.#assigned = new RunningJobs(set);
    this.traces = new JobTraces(carried?.traces);
    if (carried === undefined) return;
    this.startedTotal = carried.startedTotal;
    this.completedTotal = carried.completedTotal;
    this.#droppedUntil = carried.droppedUntil ?? 0;
    for (const [key, job] of decodeJobs(set, carried)) this.#store(key, job);
    for (const [key, at] of decodeCompleted(carried.completed)) this.#over.set(key, at);
  }

  carry(): CarriedJobs {
    return {
      ...encodeJobs(this.#name, this.#live),
      completed: encodeCompleted(this.#over),
      ...(this.#droppedUntil === 0 ? {} : { droppedUntil: this.#droppedUntil }),
      ...this.traces.carry(),
      startedTotal: this.startedTotal,
      completedTotal: this.completedTotal,
    };
  }

  /** Forgets this many of the jobs that are over, the oldest first. */
  forgetCompleted(count: number): void {
    for (const key of [...this.#over.keys()].slice(0, count)) this.#over.delete(key);
  }

  /**
   * Forgets this many of the jobs that are not over: those that have left first, then those that
   * were queued last. The next check of the CI server finds what is queued.
   */
  forgetQueued(count: number): void {
    const left = [...this.#live].flatMap(([key, { state }]) => (state === 'left' ? [key] : []));
    const queued = this.lastQueued(count).map(({ key }) => key);
    for (const key of [...left, ...queued].slice(0, count)) {
      this.#drop(key);
      this.traces.delete(key);
    }
  }

  /**
   * May this event be of a job that was over and is forgotten? Whoever has a delivery of a webhook can send it again: it stays signed. A job that is
   * known, or that cannot have been over so early, is none. Nothing here tells such a repetition from news: the next look at the CI server does.
   */
  isOlderThanHistory(event: JobEvent): boolean {
    const key = jobKey(event);
    return event.at <= this.#droppedUntil && !this.#live.has(key) && !this.#over.has(key);
  }

  /** Takes an event in. @returns the job as it is now; `undefined` when it was over already, or there are too many */
  applyEvent(event: JobEvent, now: number): JobRecord | undefined {
    const key = jobKey(event);
    const isNew = !this.#live.has(key);
    const job = this.#set(key, (known) => applyJobEvent(known, event, now), now);
    if (isNew && event.traceparent !== undefined && job?.state === 'queued')
      this.traces.set(key, event.traceparent);
    return job;
  }

  /**
   * Takes in a look at the CI server.
   * @param look - `complete`: it left nothing out, and what it does not list neither waits nor runs; `absent`: keys of jobs that it was asked for, and that do not either
   * @param checkedAt - when it began
   * @param started - told of each job that runs, in the words of an event. @default it is taken in
   */
  applyQueueCheck(
    { jobs, complete, listed: before = [], absent = [] }: CiJobList & JobsElsewhere,
    checkedAt: number,
    now: number,
    started: (event: JobEvent) => void = (event) => void this.applyEvent(event, now),
  ): void {
    const listed = new Set<string>(before);
    for (const job of jobs) {
      const key = jobKey({ jobId: job.id, runAttempt: job.runAttempt });
      listed.add(key);
      if (job.status === 'queued')
        this.#set(key, (known) => recordQueued(known, job, checkedAt, now), now);
      else
        started({
          action: 'in_progress',
          jobId: job.id,
          runAttempt: job.runAttempt,
          repository: job.repository,
          labels: [],
          at: job.startedAt ?? job.queuedAt,
          ...(job.runnerName === undefined ? {} : { runnerName: job.runnerName }),
        });
    }
    for (const key of complete ? this.#live.keys() : absent)
      if (!listed.has(key))
        this.#set(
          key,
          (job) =>
            job === undefined ? undefined : recordUnlisted(job, checkedAt - LIST_LAG_MS, now),
          now,
        );
  }

  get(event: Pick<JobEvent, 'jobId' | 'runAttempt'>): JobRecord | undefined {
    return this.#live.get(jobKey(event));
  }

  /** Those that wait here, the last to come first: at the most so many. @param asking - only so many of each repository, the first to come. @default all */
  lastQueued(count: number, asking?: ReadonlyMap<string, number>): ReturnType<typeof lastQueued> {
    return lastQueued(this.#live, count, asking);
  }

  /** It is another set's from now on. @returns what is known of it; `undefined`: it is over */
  reroute(key: string, to: string, now: number): JobRecord | undefined {
    return this.#set(key, (job) => job && { ...job, reroutedTo: to, updatedAt: now }, now);
  }

  /** What was passed on to these sets waits here again. */
  reclaim(sets: ReadonlySet<string>, now: number): void {
    for (const [key, { reroutedTo }] of this.#live)
      if (reroutedTo !== undefined && sets.has(reroutedTo))
        this.#set(key, (job) => job && omitKey(job, 'reroutedTo'), now);
  }

  /** Of those that have waited here since before this time, the ones of which nothing was heard for longest: at the most so many. */
  staleJobs(before: number, count: number): ReturnType<typeof staleJobs> {
    return staleJobs(this.#live, before, count);
  }

  /** Keys of the jobs that wait here because other sets have passed them on, and the sets that this one has passed jobs on to. */
  rerouted(): { here: string[]; to: string[] } {
    const to = new Set<string>();
    const here: string[] = [];
    for (const [key, job] of this.#live) {
      if (job.reroutedTo !== undefined) to.add(job.reroutedTo);
      else if (job.reroutedHere === true) here.push(key);
    }
    return { here, to: [...to] };
  }

  /** A runner has ended: the job that was assigned to it is over, or will never be another's. @returns whether there was one */
  runnerEnded(workflowId: string, now: number): boolean {
    const theirs = this.#assigned.keysOf(workflowId);
    for (const key of theirs)
      this.#set(key, (job) => job && { ...job, state: 'completed', updatedAt: now }, now);
    return theirs.length > 0;
  }

  /** Runners are listed: what is assigned to one that is idle is over, and the event that tells so was lost. An event of just now is ahead of the list. */
  reconcileWithList(runners: readonly ListedRunner[], now: number): void {
    const idle = new Set(
      runners.flatMap(({ phase, runnerName }) => (phase === 'Idle' ? [runnerName] : [])),
    );
    for (const [key, job] of this.#assigned.all()) {
      if (
        job.runnerName !== undefined &&
        idle.has(job.runnerName) &&
        job.updatedAt <= now - BUSY_LAG_MS
      )
        this.#set(key, () => ({ ...job, state: 'completed', updatedAt: now }), now);
    }
    this.drop(now);
  }

  get queued(): number {
    return this.#queued;
  }

  /** Jobs of its own that wait in other sets: what others have passed here, and went on, they count. */
  get reroutedCount(): number {
    return this.#reroutedCount;
  }

  /** What {@link count} counts, and what was passed on, by repository. */
  byRepository(leaves: (workflowId: string) => boolean): Map<string, JobCount> {
    return countByRepository(this.#live, this.#assigned.countWaiting(leaves));
  }

  /** Jobs that ask for a place of this set. @param leaves - tells runners whose jobs ask for none */
  count(leaves: (workflowId: string) => boolean): { queued: number; running: number } {
    return { queued: this.#queued, running: this.#assigned.count(leaves) };
  }

  /** Queued jobs that a look begun at this time or later found queued. */
  confirmedSince(checkedAt: number): number {
    let confirmed = 0;
    for (const at of this.#confirmed.values()) if (at >= checkedAt) confirmed++;
    return confirmed;
  }

  /** Jobs that have been queued since before this time, by the CI server's clock. */
  queuedSince(before: number): number {
    let waiting = 0;
    for (const job of this.#live.values()) if (isQueuedHere(job) && job.since < before) waiting++;
    return waiting;
  }

  /**
   * Returns whether a job is assigned to the runner of this name at the CI server.
   * @param workflowId - workflow of that runner, if it is known: finding it costs time
   */
  runningOn(runnerName: string, workflowId?: string): boolean {
    return this.#assigned.has(runnerName, workflowId);
  }

  get size(): { active: number; completed: number } {
    return { active: this.#live.size, completed: this.#over.size };
  }

  /** Forgets what nothing more can be heard of. */
  drop(now: number): void {
    this.#dropCompleted(now);
    const { queuedMs, runningMs } = this.limits;
    for (const [key, { state, since, updatedAt }] of this.#live) {
      if (updatedAt > now - (state === 'assigned' ? runningMs : queuedMs)) continue;
      this.#drop(key);
      this.traces.delete(key);
      this.#droppedUntil = Math.max(this.#droppedUntil, since);
    }
  }

  #dropCompleted(now: number): void {
    for (const [key, at] of this.#over) {
      if (at > now - FORGET_MS && this.#over.size <= MAX_OVER_JOBS) break;
      this.#over.delete(key);
      // One that had to go for want of room says nothing of the news of its time: most of that is still to come.
      if (at <= now - FORGET_MS) this.#droppedUntil = Math.max(this.#droppedUntil, at);
    }
  }

  #set(
    key: string,
    change: (job: JobRecord | undefined) => JobRecord | undefined,
    now: number,
  ): JobRecord | undefined {
    if (this.#over.has(key)) return undefined;
    const before = this.#live.get(key);
    const after = change(before);
    if (after === undefined || after === before) return after;
    if (!isQueuedHere(after)) this.traces.delete(key);
    if (before === undefined && after.state !== 'completed' && this.#live.size >= MAX_ACTIVE_JOBS)
      return undefined;
    if (after.state === 'assigned' && before?.state !== 'assigned') this.startedTotal++;
    if (after.state !== 'completed') {
      this.#store(key, after);
      return after;
    }
    // A job that ran, told by its completion alone: it has started, too.
    if (before?.state !== 'assigned' && after.runnerName !== undefined) this.startedTotal++;
    this.completedTotal++;
    this.#drop(key);
    this.#over.set(key, now);
    if (this.#over.size > MAX_OVER_JOBS) this.#dropCompleted(now);
    return after;
  }

  #store(key: string, job: JobRecord): void {
    this.#drop(key);
    this.#live.set(key, job);
    if (isQueuedHere(job)) this.#queued++;
    else if (isRerouted(job)) this.#reroutedCount++;
    if (isQueuedHere(job) && job.confirmedAt !== undefined)
      this.#confirmed.set(key, job.confirmedAt);
    if (job.state === 'assigned') this.#assigned.set(key, job);
  }

  #drop(key: string): void {
    const job = this.#live.get(key);
    if (job !== undefined && isQueuedHere(job)) this.#queued--;
    else if (job !== undefined && isRerouted(job)) this.#reroutedCount--;
    this.#live.delete(key);
    this.#confirmed.delete(key);
    this.#assigned.delete(key);
  }
}
