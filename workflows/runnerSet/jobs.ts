/**
 * All jobs that a set knows. Events may arrive in any order: the order of core/domain/ciJobState.ts
 * applies. The memory is bounded: completed jobs are forgotten after a time, or earlier if there
 * are many.
 */
import type { ListedRunner } from '../../core/activities/index.ts';
import type { JobEvent } from '../../core/contract/index.ts';
import type { CiJobList } from '../../core/domain/ciServer.ts';
import { jobKey } from '../../core/domain/ciJobState.ts';
import { limitTime } from '../../core/domain/isTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
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

/**
 * Time after which a completed job is forgotten (ms), unless more than {@link MAX_OVER_JOBS} jobs
 * have completed since.
 */
const FORGET_MS = 6 * 3_600_000;
/**
 * Maximum number of jobs that have not completed. Further jobs are not stored; a check of the CI
 * server finds them when there is room.
 */
export const MAX_ACTIVE_JOBS = 10_000;
const MAX_OVER_JOBS = 20_000;
/** Maximum delay until a CI server's list shows what its webhook has already reported (ms). */
const LIST_LAG_MS = 10_000;
/**
 * Maximum delay between a job's event and the listing of its runner as busy (ms). The pod reports
 * within seconds, and visibility may lag some more.
 */
export const BUSY_LAG_MS = 30_000;

/** Jobs that a queue check reports on without listing them, by their keys. */
interface JobsElsewhere {
  /** Keys of jobs that a previous part of the list contained. @default none */
  readonly listed?: readonly string[];
  /** Keys of jobs that are neither queued nor running. @default none */
  readonly absent?: readonly string[];
}

/** Jobs that a set knows. It is updated by job events, checks of the CI server and runner lists. */
export class SetJobs {
  readonly #name: string;
  readonly #live = new Map<string, JobRecord>();
  /**
   * Active jobs that are assigned, and those that a check found queued. They are kept separately,
   * because queries after every event must not iterate over all jobs.
   */
  readonly #assigned: RunningJobs;
  readonly #confirmed = new Map<string, number>();
  #queued = 0;
  #reroutedCount = 0;
  readonly traces: JobTraces;
  /** Key of the job to the time at which it completed (ms since the epoch); oldest first. */
  readonly #over = new Map<string, number>();
  /**
   * Jobs that completed by this time, or were queued by then without any later event, may have been
   * forgotten (ms since the epoch).
   */
  #droppedUntil = 0;
  startedTotal = 0;
  completedTotal = 0;
  /** Maximum time for which a job without further events can still be queued or running. */
  limits: CiJobLimits = DEFAULT_JOB_LIMITS;

  /**
   * @param carried - jobs of the previous run, which anyone may have written
   * @param now - latest plausible time of these (ms since the epoch)
   */
  constructor(set: string, carried?: CarriedJobs, now = Number.POSITIVE_INFINITY) {
    this.#name = set;
    this.#assigned = new RunningJobs(set);
    this.traces = new JobTraces(carried?.traces);
    if (carried === undefined) return;
    this.startedTotal = carried.startedTotal;
    this.completedTotal = carried.completedTotal;
    this.#droppedUntil = limitTime(carried.droppedUntil ?? 0, now);
    for (const [key, job] of decodeJobs(set, carried, now)) this.#store(key, job);
    for (const [key, at] of decodeCompleted(carried.completed, now)) this.#over.set(key, at);
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

  /** Forgets this many completed jobs, oldest first. */
  forgetCompleted(count: number): void {
    for (const key of [...this.#over.keys()].slice(0, count)) this.#over.delete(key);
  }

  /**
   * Forgets this many jobs that have not completed: first those in the state `left`, then those
   * that were queued last. The next check of the CI server finds queued jobs.
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
   * Whether an event may be about a job that completed and was forgotten. Anyone who has a webhook
   * delivery can send it again, because its signature stays valid. The result is false for a known
   * job, or for a job that cannot have completed so early. Only the next check of the CI server can
   * distinguish such a repetition from a new event.
   *
   * A job that another set reroutes may have waited for longer than this set remembers. It is no
   * delivery, and if it were skipped, neither set would serve the job.
   */
  isOlderThanHistory(event: JobEvent): boolean {
    if (event.reroutedBy !== undefined) return false;
    const key = jobKey(event);
    return event.at <= this.#droppedUntil && !this.#live.has(key) && !this.#over.has(key);
  }

  /**
   * Applies an event.
   *
   * @returns the job after the event; `undefined` if the job had already completed, or there are
   * too many jobs
   */
  applyEvent(event: JobEvent, now: number): JobRecord | undefined {
    const key = jobKey(event);
    const isNew = !this.#live.has(key);
    const job = this.#set(key, (known) => applyJobEvent(known, event, now), now);
    if (isNew && event.traceparent !== undefined && job?.state === 'queued')
      this.traces.set(key, event.traceparent);
    return job;
  }

  /**
   * Applies a queue check of the CI server.
   *
   * @param look - result of the check. `complete`: the list is complete, so jobs that are missing
   * are neither queued nor running; `absent`: keys of individually queried jobs that are neither
   * queued nor running
   * @param checkedAt - start of the check (ms since the epoch)
   * @param started - called with an event for each running job. @default applies the event
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
          ...omitUndefined({ runId: job.runId, runnerName: job.runnerName }),
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

  /**
   * Returns queued jobs of this set, most recently queued first.
   *
   * @param count - maximum number of jobs
   * @param asking - maximum number of jobs for each repository, of which the first are taken.
   * @default all
   */
  lastQueued(count: number, asking?: ReadonlyMap<string, number>): ReturnType<typeof lastQueued> {
    return lastQueued(this.#live, count, asking);
  }

  /**
   * Marks a job as rerouted to another set.
   *
   * @returns the job; `undefined` if it has completed
   */
  reroute(key: string, to: string, now: number): JobRecord | undefined {
    return this.#set(key, (job) => job && { ...job, reroutedTo: to, updatedAt: now }, now);
  }

  /** Takes back jobs that were rerouted to these sets: they are queued here again. */
  reclaim(sets: ReadonlySet<string>, now: number): void {
    for (const [key, { reroutedTo }] of this.#live)
      if (reroutedTo !== undefined && sets.has(reroutedTo))
        this.#set(key, (job) => job && omitKey(job, 'reroutedTo'), now);
  }

  /**
   * Returns jobs that are queued here and were last updated before the given time, those with the
   * oldest update first.
   *
   * @param before - time (ms since the epoch)
   * @param count - maximum number of jobs
   */
  staleJobs(before: number, count: number): ReturnType<typeof staleJobs> {
    return staleJobs(this.#live, before, count);
  }

  /**
   * Returns the keys of jobs that other sets have rerouted to this set, and the sets to which this
   * set has rerouted jobs.
   */
  rerouted(): { here: string[]; to: string[] } {
    const to = new Set<string>();
    const here: string[] = [];
    for (const [key, job] of this.#live) {
      if (job.reroutedTo !== undefined) to.add(job.reroutedTo);
      else if (job.reroutedHere === true) here.push(key);
    }
    return { here, to: [...to] };
  }

  /**
   * Marks the jobs of a runner that has ended as completed: a job that was assigned to it has
   * completed, or will never run on another runner.
   *
   * @returns whether there was such a job
   */
  runnerEnded(workflowId: string, now: number): boolean {
    const theirs = this.#assigned.keysOf(workflowId);
    for (const key of theirs)
      this.#set(key, (job) => job && { ...job, state: 'completed', updatedAt: now }, now);
    return theirs.length > 0;
  }

  /**
   * Applies a list of runners: a job that is assigned to an idle runner has completed, and its
   * event was lost. A very recent event may be ahead of the list.
   */
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

  /**
   * Number of this set's own jobs that are queued in other sets. Jobs that other sets rerouted here
   * and this set rerouted again are counted by those sets.
   */
  get reroutedCount(): number {
    return this.#reroutedCount;
  }

  /** Returns the counts of {@link count} and the number of rerouted jobs, by repository. */
  byRepository(leaves: (workflowId: string) => boolean): Map<string, JobCount> {
    return countByRepository(this.#live, this.#assigned.countWaiting(leaves));
  }

  /**
   * Returns the number of jobs that require a runner of this set.
   *
   * @param leaves - whether a runner is draining; its jobs are not counted
   */
  count(leaves: (workflowId: string) => boolean): { queued: number; running: number } {
    return { queued: this.#queued, running: this.#assigned.count(leaves) };
  }

  /** Returns the number of queued jobs that a check started at this time or later found queued. */
  confirmedSince(checkedAt: number): number {
    let confirmed = 0;
    for (const at of this.#confirmed.values()) if (at >= checkedAt) confirmed++;
    return confirmed;
  }

  /**
   * Returns the number of jobs that have been queued since before this time, by the CI server's
   * clock.
   */
  queuedSince(before: number): number {
    let waiting = 0;
    for (const job of this.#live.values()) if (isQueuedHere(job) && job.since < before) waiting++;
    return waiting;
  }

  /**
   * Returns whether a job is assigned to the runner of this name at the CI server.
   * @param workflowId - workflow of that runner, if it is known, because finding it is slow
   */
  runningOn(runnerName: string, workflowId?: string): boolean {
    return this.#assigned.has(runnerName, workflowId);
  }

  /** Jobs that have not completed, by key. */
  get active(): ReadonlyMap<string, JobRecord> {
    return this.#live;
  }

  /** Keys of the completed jobs that are remembered, with the time of their end. */
  get completed(): ReadonlyMap<string, number> {
    return this.#over;
  }

  get size(): { active: number; completed: number } {
    return { active: this.#live.size, completed: this.#over.size };
  }

  /** Forgets jobs for which no further event can arrive. */
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
      // A job that was dropped to make room proves nothing about other events of its time: most of
      // these are still to come.
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
    // A job that ran and is known by its completion only has started as well.
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
