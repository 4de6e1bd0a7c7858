/** All that a set knows, what each piece of news changes in it, and what follows from it. No Temporal here: it is tested as it is. */
import { defined } from '../../core/defined.ts';
import type { JobEvent, RunnerEndedNews, RunnerNews, RunnerSetInput } from '../../core/contract/index.ts';
import { HEALTHY, afterEnd, afterFailure, afterOnline, type SetHealth } from './breaker.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { SetJobs, type CarriedJobs } from './jobs.ts';
import { suffixOf, workflowIdOfRunner } from '../../core/domain/setRunnerNames.ts';
import { SetRunners, type CarriedRunners } from './runners.ts';
import { desiredSize, type ScaleBounds } from '../../core/domain/scale.ts';
import type { CiJobs } from '../../core/domain/ciServer.ts';
import type { ListedRunner, ScheduleNow } from '../../core/calls/index.ts';

/** What {@link SetState} keeps besides runners and jobs; plain data, all of it carried over. */
export interface SetFacts {
  spec: SetSpec;
  /** What the set was last told to be. Holds and pauses are an operator's as well, and stand below. */
  declaration: Omit<RunnerSetInput, 'holds' | 'paused'>;
  /** The time of the last change (ms since the epoch). */
  at: number;
  schedule: ScheduleNow;
  health: SetHealth;
  holds: string[];
  /** An operator's reason to start no runner. */
  pausedBy?: string;
  /** The set ends when its runners have. */
  ending?: string;
  /** By plain cancellation. */
  cancelled?: true;
  desired: number;
  /** When `desired` last rose (ms since the epoch). */
  lastScaleUpAt: number;
  /** When the runners were last read from visibility. */
  listedAt?: number;
  /** When the last look at the jobs of the CI server began, and the last that had an answer. */
  queueCheckAskedAt?: number;
  checkedAt?: number;
  /** Why the last look had no answer; `unsupported`: the CI server has no such look. */
  queueCheckFailure?: string;
  /** Ephemeral runners that ended with a job of which no event has told, and when. */
  guards: [string, number][];
}

export interface CarriedSet {
  readonly facts: SetFacts;
  readonly jobs: CarriedJobs;
  readonly runners: CarriedRunners;
}

export class SetState {
  readonly facts: SetFacts;
  readonly jobs: SetJobs;
  readonly runners: SetRunners;

  private constructor(facts: SetFacts, jobs: SetJobs, runners: SetRunners) {
    this.facts = facts;
    this.jobs = jobs;
    this.runners = runners;
  }

  static begin(spec: SetSpec, declaration: RunnerSetInput, schedule: ScheduleNow, now: number): SetState {
    const facts: SetFacts = { spec, declaration, at: now, schedule, health: HEALTHY, holds: [], desired: 0, lastScaleUpAt: now, guards: [] };
    const state = new SetState(facts, new SetJobs(), new SetRunners(spec.name));
    state.declare(spec, declaration, schedule, now);
    return state;
  }

  /** The set of the run before. Its runners are read again: what happened at the seam is in visibility. */
  static restore({ facts, jobs, runners }: CarriedSet): SetState {
    if (facts.listedAt !== undefined) facts.listedAt = 0;
    return new SetState(facts, new SetJobs(jobs), new SetRunners(facts.spec.name, runners));
  }

  carry(): CarriedSet {
    return { facts: this.facts, jobs: this.jobs.carry(), runners: this.runners.carry() };
  }

  // ---------------------------------------------------------------------------------------------------- news

  /** Another declaration. A template that differs starts with a clean slate; holds and pauses that it does not mention stay as they are. */
  declare(spec: SetSpec, { holds, paused, ...declaration }: RunnerSetInput, schedule: ScheduleNow, now: number): void {
    const { facts } = this;
    if (spec.generation !== facts.spec.generation) facts.health = HEALTHY;
    Object.assign(facts, { spec, declaration, schedule });
    delete facts.queueCheckAskedAt;
    if (holds !== undefined) facts.holds = [...holds];
    if (paused === true) facts.pausedBy ??= '';
    if (paused === false) delete facts.pausedBy;
    this.settle(now);
  }

  /** What the set was last told to be, with an operator's holds and pauses. */
  declarationNow(): RunnerSetInput {
    const { declaration, holds, pausedBy } = this.facts;
    return {
      ...declaration,
      ...(holds.length === 0 ? {} : { holds: [...holds] }),
      ...defined({ paused: pausedBy === undefined ? undefined : true }),
    };
  }

  reschedule(schedule: ScheduleNow, now: number): void {
    this.facts.schedule = schedule;
    this.settle(now);
  }

  pause(reason: string): void {
    this.facts.pausedBy = reason;
  }

  /** An operator's word closes the breaker, too. */
  resume(): void {
    delete this.facts.pausedBy;
    this.facts.health = HEALTHY;
  }

  hold(nameOrId: string, release: boolean): void {
    const others = this.facts.holds.filter((held) => !this.isSame(held, nameOrId));
    this.facts.holds = release ? others : [...others, nameOrId];
  }

  /** A runner goes by its name and by its workflow id. */
  isSame(one: string, other: string): boolean {
    const runner = this.runners.find(one);
    return one === other || (runner !== undefined && runner === this.runners.find(other));
  }

  end(reason: string, cancelled = false): void {
    this.facts.ending ??= reason;
    if (cancelled) this.facts.cancelled = true;
    // Whether nothing is left is for a list taken from now on to say.
    delete this.facts.listedAt;
  }

  jobEvents(events: readonly JobEvent[], now: number): void {
    for (const event of events) if (!this.jobs.mayBeForgotten(event)) this.#jobEvent(event, now);
    this.settle(now);
  }

  #jobEvent(event: JobEvent, now: number): void {
    const job = this.jobs.take(event, now);
    const name = event.runnerName;
    const workflowId = name === undefined ? undefined : workflowIdOfRunner(this.facts.spec.name, name);
    if (name === undefined || workflowId === undefined) return;
    const runner = this.runners.get(workflowId);
    if (runner === undefined) {
      // It has ended: its place is accounted for, and its job is over. Before the first list nobody knows.
      this.facts.guards = this.facts.guards.filter(([id]) => id !== workflowId);
      if (this.facts.listedAt !== undefined && job?.state === 'assigned') this.jobs.runnerEnded((other) => other === name, now);
      return;
    }
    Object.assign(runner, { runnerName: name, jobSeen: true });
    if (runner.state === 'draining') return;
    if (job?.state === 'assigned' || runner.ephemeral || this.jobs.assignedTo(name)) this.runners.enter(runner, 'busy', now);
    else if (event.action === 'completed' && runner.state === 'busy') this.runners.enter(runner, 'idle', now);
  }

  online({ workflowId, runnerName }: RunnerNews, now: number): void {
    const runner = this.runners.get(workflowId);
    if (runner === undefined) {
      // One that this set has not started, or has lost sight of: the list will tell.
      if (suffixOf(this.facts.spec.name, workflowId) !== undefined && !this.runners.hasEnded(workflowId)) delete this.facts.listedAt;
      return;
    }
    runner.runnerName = runnerName;
    if (runner.state === 'starting') this.runners.enter(runner, this.jobs.assignedTo(runnerName) ? 'busy' : 'idle', now);
    if (runner.generation === this.facts.spec.generation) this.facts.health = afterOnline(this.facts.health);
    this.settle(now);
  }

  ended(news: RunnerEndedNews, now: number): void {
    const { facts } = this;
    if (suffixOf(facts.spec.name, news.workflowId) === undefined || this.runners.hasEnded(news.workflowId)) return;
    const runner = this.runners.remove(news.workflowId, now);
    this.#letGo(news.workflowId, runner?.runnerName ?? news.runnerName);
    const hadJob = this.#releaseJobsOf(news.workflowId, now);
    if (runner !== undefined && runner.generation === facts.spec.generation) facts.health = afterEnd(facts.health, news, runner.startedAt, now, facts.spec);
    const unaccounted = news.ranJob && !hadJob && runner?.ephemeral === true && !runner.jobSeen;
    if (unaccounted && this.bounds.kind === 'elastic') facts.guards.push([news.workflowId, now]);
    this.settle(now);
  }

  /** Runners were put on their way: known before they are started, so that nothing is started twice. */
  starting(runners: readonly { workflowId: string; slot?: number }[], now: number): void {
    const { generation, ephemeral } = this.facts.spec;
    for (const runner of runners) this.runners.add(runner, generation, ephemeral, now);
  }

  /** Some could not even be started. */
  notStarted(workflowIds: readonly string[], why: string, now: number): void {
    const { facts } = this;
    for (const workflowId of workflowIds) this.runners.remove(workflowId, now);
    facts.health = afterFailure(facts.health, why, now, now, facts.spec);
    this.settle(now);
  }

  draining(workflowIds: readonly string[], gone: readonly string[], now: number): void {
    for (const workflowId of workflowIds) {
      const runner = this.runners.get(workflowId);
      if (runner !== undefined) this.runners.asked(runner, now);
    }
    for (const workflowId of gone) this.#vanished(workflowId, now);
    this.settle(now);
  }

  /** @param gone - those of the runners that were missing in the list */
  listed(listed: readonly ListedRunner[], gone: readonly string[], now: number): void {
    const { health, spec } = this.facts;
    const starting = this.runners.all().filter(({ state, generation }) => state === 'starting' && generation === spec.generation);
    this.jobs.listed(listed, now);
    this.runners.list(listed, now, (name) => this.jobs.assignedTo(name));
    // Its own word that it is online was lost.
    if (starting.some(({ state }) => state === 'idle' || state === 'busy')) this.facts.health = afterOnline(health);
    for (const workflowId of gone) this.#vanished(workflowId, now);
    this.facts.listedAt = now;
    this.settle(now);
  }

  queueCheckBegins(now: number): void {
    this.facts.queueCheckAskedAt = now;
  }

  queueChecked(jobs: CiJobs, checkedAt: number, now: number): void {
    const { facts } = this;
    this.jobs.takeQueueCheck(jobs, checkedAt, now);
    if (jobs.complete) facts.guards = facts.guards.filter(([, endedAt]) => endedAt > checkedAt);
    facts.checkedAt = checkedAt;
    delete facts.queueCheckFailure;
    this.settle(now);
  }

  queueNotChecked(why: string): void {
    this.facts.queueCheckFailure = why;
  }

  // ----------------------------------------------------------------------------------------------- what follows

  get bounds(): ScaleBounds {
    const { spec, schedule } = this.facts;
    return spec.schedules[schedule.index ?? -1]?.bounds ?? spec.bounds;
  }

  /** Notes what the demand is now. To be called after every change. */
  settle(now: number): void {
    const { facts } = this;
    facts.at = now;
    facts.guards = facts.guards.filter(([, endedAt]) => endedAt + facts.spec.recreationGuardMs > now);
    const busy = this.runners.all().filter(({ state }) => state === 'busy');
    const assigned = this.jobs.assignedRunners();
    const checkedAt = facts.checkedAt ?? Number.POSITIVE_INFINITY;
    const desired =
      facts.ending !== undefined
        ? 0
        : desiredSize(this.bounds, {
            ...this.demand(),
            finished: busy.filter(({ ephemeral, jobSeen, runnerName = '' }) => ephemeral && jobSeen && !assigned.has(runnerName)).length,
            busyRunners: busy.length,
            confirmedQueued: this.jobs.confirmedSince(checkedAt),
            busyBeforeCheck: busy.filter(({ busySince = checkedAt }) => busySince < checkedAt).length,
          });
    if (desired > facts.desired) facts.lastScaleUpAt = now;
    facts.desired = desired;
  }

  /** Jobs that ask for a place of this set. */
  demand(): { queued: number; assigned: number } {
    const { name } = this.facts.spec;
    return this.jobs.count((runnerName) => {
      const workflowId = workflowIdOfRunner(name, runnerName);
      return workflowId === undefined || this.runners.get(workflowId)?.state === 'draining';
    });
  }

  isHeld({ workflowId, runnerName }: { workflowId: string; runnerName?: string }): boolean {
    return this.facts.holds.some((held) => held === workflowId || held === runnerName);
  }

  /** Places that stay empty: no more than there are jobs that the missing events may be about. */
  guardedPlaces(): number {
    const { guards } = this.facts;
    if (guards.length === 0) return 0;
    const lastEnd = Math.max(...guards.map(([, endedAt]) => endedAt));
    return Math.max(0, Math.min(guards.length, this.demand().queued - this.jobs.confirmedSince(lastEnd)));
  }

  #releaseJobsOf(workflowId: string, now: number): boolean {
    const { name } = this.facts.spec;
    return this.jobs.runnerEnded((runnerName) => workflowIdOfRunner(name, runnerName) === workflowId, now);
  }

  /** Gone without a word: nobody knows what became of it. */
  #vanished(workflowId: string, now: number): void {
    this.#letGo(workflowId, this.runners.remove(workflowId, now)?.runnerName);
    this.#releaseJobsOf(workflowId, now);
  }

  /** A hold ends with its runner. */
  #letGo(workflowId: string, runnerName: string | undefined): void {
    this.facts.holds = this.facts.holds.filter((held) => held !== workflowId && held !== runnerName);
  }
}
