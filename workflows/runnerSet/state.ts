/**
 * State of a set, and how events change it. It does not depend on Temporal, so that it can be
 * unit-tested.
 */
import type { ActiveSchedule, AdmittedSet, ListedRunner } from '../../core/activities/index.ts';
import type { RunnerEndedEvent, RunnerRef, RunnerSetInput } from '../../core/contract/index.ts';
import { DEFAULT_JOB_LIMITS } from '../../core/domain/ciServerTraits.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { runnerSuffix } from '../../core/domain/setRunnerNames.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { currentBounds } from './bounds.ts';
import { HEALTHY, recordEnd, recordFailure, recordReady } from './breaker.ts';
import { isUnplaced } from './capacity.ts';
import { CapacityObserver } from './capacityObserver.ts';
import type { CarriedSetState, SetStateData } from './carriedState.ts';
import { Guards } from './guards.ts';
import { Holds } from './holds.ts';
import { JobReports, recordJobTaken } from './jobReports.ts';
import { SetJobs } from './jobs.ts';
import { JobLimits } from './limits.ts';
import { recordDesired } from './peaks.ts';
import { Rerouting } from './rerouting.ts';
import { readyTime, type SetRunner } from './runnerRecord.ts';
import { SetRunners } from './runners.ts';
import { applyDeclaration, newFacts, reschedule, restoreFacts } from './setFacts.ts';
import { sizeNow } from './size.ts';

/**
 * State of a set. Create it with {@link SetState.begin}, or with {@link SetState.restore} after a
 * continue-as-new.
 */
export class SetState {
  readonly facts: SetStateData;
  readonly guards: Guards;
  readonly jobs: SetJobs;
  readonly runners: SetRunners;
  readonly holds: Holds;
  readonly passing: Rerouting;
  readonly jobReports: JobReports;
  readonly observer: CapacityObserver;
  /** Whether a list of the runners has been requested and is not there yet. */
  listing = false;
  limits: JobLimits;

  private constructor(facts: SetStateData, carried?: CarriedSetState) {
    const { name } = facts.spec;
    this.facts = facts;
    this.guards = new Guards(name, carried?.guards ?? [], facts.at);
    this.passing = new Rerouting(carried?.forwardedEvents);
    this.limits = new JobLimits(facts.spec.limits);
    this.jobs = new SetJobs(name, carried?.jobs, facts.at);
    this.jobs.limits = facts.spec.jobLimits ?? DEFAULT_JOB_LIMITS;
    this.runners = new SetRunners(name, carried?.runners, facts.at);
    this.holds = new Holds(this.runners);
    this.jobReports = new JobReports(this);
    this.observer = new CapacityObserver(facts, this.runners, this.holds);
  }

  /** Creates the state of a new set. */
  static begin(
    spec: SetSpec,
    declaration: RunnerSetInput,
    schedule: ActiveSchedule,
    now: number,
  ): SetState {
    const state = new SetState(newFacts(spec, declaration, schedule, now));
    state.declare(spec, declaration, schedule, now, now);
    state.updateDemand(now);
    return state;
  }

  /**
   * Restores the set of the previous run, as admitted by this run. Its runners are listed again,
   * because what happened between the two runs is found in visibility only.
   */
  static restore(carried: CarriedSetState, admitted: AdmittedSet): SetState {
    const state = new SetState(restoreFacts(carried, admitted), carried);
    state.holds.replace(admitted.declaration.holds ?? []);
    return state;
  }

  /** Returns the state to carry over with continue-as-new. */
  carry(): CarriedSetState {
    const { spec: _s, declaration: _d, schedule: _c, rescheduleAt: _r, ...facts } = this.facts;
    return {
      facts,
      guards: this.guards.carry(),
      forwardedEvents: this.passing.carry(),
      jobs: this.jobs.carry(),
      runners: this.runners.carry(),
    };
  }

  // --- Events: the cost of each is independent of the number of runners and jobs.

  /**
   * Applies another declaration. A different template resets the health. Holds and pauses that the
   * declaration does not mention stay as they are.
   */
  declare(
    spec: SetSpec,
    declaration: RunnerSetInput,
    schedule: ActiveSchedule,
    askedAt: number,
    now: number,
  ): void {
    applyDeclaration(this.facts, spec, declaration);
    this.limits = new JobLimits(spec.limits);
    this.jobs.limits = spec.jobLimits ?? DEFAULT_JOB_LIMITS;
    reschedule(this.facts, schedule, askedAt, now);
    if (declaration.holds !== undefined) this.holds.replace(declaration.holds);
  }

  /** Returns the last declaration of the set, with the holds and pauses of operators. */
  currentDeclaration(): RunnerSetInput {
    const { declaration, pausedBy } = this.facts;
    return {
      ...declaration,
      ...(this.holds.size === 0 ? {} : { holds: this.holds.all() }),
      ...omitUndefined({ paused: pausedBy === undefined ? undefined : true }),
    };
  }

  pause(reason: string): void {
    this.facts.pausedBy = reason;
  }

  /** Resumes the set. This also closes the breaker. */
  resume(): void {
    delete this.facts.pausedBy;
    this.facts.health = HEALTHY;
  }

  end(reason: string, { cancelled = false }: { readonly cancelled?: boolean } = {}): void {
    this.facts.ending ??= reason;
    if (cancelled) this.facts.cancelled = true;
    // Only a list taken from now on can show that no runner remains.
    this.#requireList();
  }

  /** Handles the report that a runner is online. */
  onRunnerOnline(ref: RunnerRef, now: number): void {
    const runner = this.#up(ref);
    if (runner?.state === 'starting')
      this.runners.setState(runner, this.jobs.runningOn(ref.runnerName) ? 'busy' : 'idle', now);
  }

  /**
   * Marks a runner as busy, because the runner reports that its job has started. The report may
   * arrive before the report that it is online, and before the job's event.
   */
  onRunnerBusy(ref: RunnerRef, now: number): void {
    const runner = this.#up(ref);
    if (runner === undefined) return;
    recordJobTaken(this.facts, runner, now);
    if (runner.state === 'starting' || runner.state === 'idle')
      this.runners.setState(runner, 'busy', now);
  }

  #up({ workflowId, runnerName }: RunnerRef): SetRunner | undefined {
    const { facts } = this;
    const runner = this.runners.get(workflowId);
    if (runner === undefined) {
      // The set has not started this runner, or has lost track of it: list the runners.
      if (
        runnerSuffix(facts.spec.name, workflowId) !== undefined &&
        !this.runners.hasEnded(workflowId)
      )
        this.#requireList();
      return undefined;
    }
    this.runners.rename(runner, runnerName);
    return runner;
  }

  /**
   * Handles the end of a runner. In an elastic set, an ephemeral runner that ended with an
   * unreported job is guarded: it is not replaced until that job is confirmed or the guard expires.
   */
  onRunnerEnded(end: RunnerEndedEvent, now: number): void {
    const { facts } = this;
    if (
      runnerSuffix(facts.spec.name, end.workflowId) === undefined ||
      this.runners.hasEnded(end.workflowId)
    )
      return;
    const runner = this.runners.remove(end.workflowId, now);
    const wasReady = runner !== undefined && readyTime(runner, facts.spec.minReadyMs) <= now;
    this.holds.onRunnerEnded(end.workflowId, runner?.runnerName ?? end.runnerName);
    const isDone = this.jobReports.takeDone(end.workflowId);
    const hadJob = this.jobs.runnerEnded(end.workflowId, now);
    if (runner !== undefined && runner.templateHash === facts.spec.templateHash) {
      const ended = { startedAt: runner.startedAt, wasReady };
      facts.health = recordEnd(facts.health, end, ended, now, facts.spec);
    }
    const isReported = facts.spec.scaleSet === undefined ? runner?.jobReported === true : isDone;
    const unaccounted = end.ranJob && !hadJob && runner?.ephemeral === true && !isReported;
    if (unaccounted && currentBounds(facts).kind === 'elastic')
      this.guards.add(end.workflowId, now);
  }

  /**
   * Adds runners that are about to be started. They are added before the start, so that nothing is
   * started twice.
   */
  onRunnersStarting(runners: readonly { workflowId: string; slot?: number }[], now: number): void {
    const { templateHash, ephemeral } = this.facts.spec;
    for (const runner of runners) this.runners.add(runner, templateHash, ephemeral, now);
  }

  /** Handles runners whose start was rejected. */
  onStartRejected(workflowIds: readonly string[], reason: string, now: number): void {
    const { facts } = this;
    for (const workflowId of workflowIds) this.runners.remove(workflowId, now);
    const last = { runner: workflowIds[0] ?? '', message: reason, at: now };
    facts.health = recordFailure(facts.health, reason, now, now, facts.spec, last);
  }

  /**
   * Records drain requests, and removes runners that had already ended.
   *
   * @param gone - workflow ids of runners that had already ended
   */
  onDrainRequested(workflowIds: readonly string[], gone: readonly string[], now: number): void {
    for (const workflowId of workflowIds) {
      const runner = this.runners.get(workflowId);
      if (runner === undefined) continue;
      // It takes no room of the cluster from others while it leaves.
      if (this.facts.clusterLimit !== undefined && isUnplaced(runner)) runner.withdrawn = true;
      this.runners.markDrainRequested(runner, now);
    }
    for (const workflowId of gone) this.#onRunnerMissing(workflowId, now);
  }

  /**
   * Returns the workflow ids of runners about which a list proves nothing: runners missing from the
   * list, and listed runners that the set does not know. The missing runners are determined with
   * the set's own time if it is later, because a clock that was ahead may have advanced it beyond
   * others.
   */
  unverified(listed: readonly ListedRunner[], at: number): string[] {
    return [
      ...this.runners.missing(listed, Math.max(at, this.facts.at)),
      ...this.runners.unknown(listed),
    ];
  }

  /**
   * Applies a list of the runners.
   *
   * @param gone - the {@link unverified} runners that are not running, according to Temporal itself
   */
  onRunnersListed(listed: readonly ListedRunner[], gone: readonly string[], now: number): void {
    const free = this.runners.all().filter(({ state }) => state === 'starting' || state === 'idle');
    this.jobs.reconcileWithList(listed, now);
    this.runners.list(listed, now, (name) => this.jobs.runningOn(name));
    // The event that the runner has taken a job was lost.
    for (const runner of free) if (runner.state === 'busy') recordJobTaken(this.facts, runner, now);
    for (const workflowId of gone) this.#onRunnerMissing(workflowId, now);
    const isOutdated = this.listing && this.facts.listStartedAt === undefined;
    this.facts.listedAt = isOutdated ? 0 : now;
    this.listing = false;
  }

  onListenerStarted(now: number): void {
    this.facts.listenerAt = now;
  }

  onListStarted(now: number): void {
    this.listing = true;
    this.facts.listStartedAt = now;
  }

  onListFailed(): void {
    this.listing = false;
    this.#requireList();
  }

  /** Has the runners listed as soon as possible, also if a list is being taken now. */
  #requireList(): void {
    const { facts } = this;
    delete facts.listStartedAt;
    if (facts.listedAt !== undefined) facts.listedAt = 0;
  }

  // --- Derived values.

  /**
   * Records the current demand. Called once after all events of a moment, because it evaluates
   * every runner.
   */
  updateDemand(now: number): void {
    const { facts } = this;
    facts.at = now;
    this.#recordReadyRunners(now);
    this.guards.expire((endedAt) => endedAt + facts.spec.recreationGuardMs <= now);
    const size = sizeNow(this, now);
    const change = { from: facts.desired, to: size.desired };
    facts.peaks = recordDesired(facts.peaks, change, now, facts.spec.scaleDownDelayMs);
    delete facts.availableAt;
    Object.assign(facts, size);
  }

  /** Ends the delays between starts if a runner has become ready since the last failure. */
  #recordReadyRunners(now: number): void {
    const { health, spec } = this.facts;
    if (health.failedAt === undefined) return;
    for (const {
      templateHash,
      state,
      onlineSince = Number.POSITIVE_INFINITY,
    } of this.runners.all()) {
      const readyAt = onlineSince + spec.minReadyMs;
      if (templateHash === spec.templateHash && state !== 'draining' && readyAt <= now)
        this.facts.health = recordReady(this.facts.health, readyAt);
    }
  }

  /** Returns the number of jobs that require a runner of this set. */
  demand(): { queued: number; running: number } {
    const { spec, scaleSet } = this.facts;
    if (spec.scaleSet !== undefined) {
      const { assigned = 0, running = 0 } = scaleSet ?? {};
      return { queued: Math.max(0, assigned - running), running };
    }
    return this.jobs.count((workflowId) => this.runners.get(workflowId)?.state === 'draining');
  }

  /** Removes a runner that ended without notifying the set, so its result is unknown. */
  #onRunnerMissing(workflowId: string, now: number): void {
    this.jobReports.takeDone(workflowId);
    this.holds.onRunnerEnded(workflowId, this.runners.remove(workflowId, now)?.runnerName);
    this.jobs.runnerEnded(workflowId, now);
  }
}
