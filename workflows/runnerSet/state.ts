/**
 * State of a set, and how events change it. It does not depend on Temporal, so that it can be
 * unit-tested.
 */
import { limitTime } from '../../core/domain/isTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type {
  JobEvent,
  QueueCheckResult,
  ScaleSetReport,
  RunnerEndedEvent,
  RunnerRef,
  RunnerSetInput,
} from '../../core/contract/index.ts';
import { HEALTHY, recordEnd, recordFailure, recordReady } from './breaker.ts';
import { decodeEnded, encodeEnded } from './carriedRunners.ts';
import type { CarriedSetState, SetStateData } from './carriedState.ts';
import { limitCarriedTimes } from './carriedTimes.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { SetJobs } from './jobs.ts';
import { JobLimits } from './limits.ts';
import { Rerouting } from './rerouting.ts';
import {
  applyObservation,
  decideCapacity,
  isUnplaced,
  MAX_OBSERVED,
  restoreCapacity,
} from './capacity.ts';
import { recordDesired } from './peaks.ts';
import { applyNumbers, limitTimes, restoreScaleSet } from './scaleSetDemand.ts';
import { sizeNow } from './size.ts';
import { runnerSuffix, runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import { readyTime, type SetRunner } from './runnerRecord.ts';
import { SetRunners } from './runners.ts';
import { DEFAULT_JOB_LIMITS } from '../../core/domain/ciServerTraits.ts';
import { scopeHolds } from '../../core/domain/ciServer.ts';
import { limitBounds, minAndMax, type ScaleBounds } from '../../core/domain/scale.ts';
import type {
  ActiveSchedule,
  AdmittedSet,
  CapacityObservation,
  ListedRunner,
} from '../../core/activities/index.ts';

/** Minimum interval between schedule evaluations (ms). */
const MIN_SCHEDULE_INTERVAL_MS = 1_000;

/**
 * State of a set. Create it with {@link SetState.begin}, or with {@link SetState.restore} after a
 * continue-as-new.
 */
export class SetState {
  readonly facts: SetStateData;
  /** Runners that scale-downs and rollouts do not touch, by name or workflow id. */
  readonly holds: Set<string>;
  /**
   * Ephemeral runners that ended with a job that no event has reported: workflow id to the time of
   * the end (ms since the epoch).
   */
  readonly guards: Map<string, number>;
  readonly jobs: SetJobs;
  readonly runners: SetRunners;
  readonly passing: Rerouting;
  /** Whether a list of the runners has been requested and is not there yet. */
  listing = false;
  /** Whether an observation of the cluster has been requested and is not there yet. */
  observing = false;
  limits: JobLimits;

  private constructor(facts: SetStateData, carried?: CarriedSetState) {
    const { name } = facts.spec;
    this.facts = facts;
    this.holds = new Set();
    this.guards = new Map(decodeEnded(name, carried?.guards ?? [], facts.at));
    this.passing = new Rerouting(carried?.forwardedEvents);
    this.limits = new JobLimits(facts.spec.limits);
    this.jobs = new SetJobs(name, carried?.jobs, facts.at);
    this.jobs.limits = facts.spec.jobLimits ?? DEFAULT_JOB_LIMITS;
    this.runners = new SetRunners(name, carried?.runners, facts.at);
  }

  /** Creates the state of a new set. */
  static begin(
    spec: SetSpec,
    declaration: RunnerSetInput,
    schedule: ActiveSchedule,
    now: number,
  ): SetState {
    const state = new SetState({
      spec,
      declaration,
      at: now,
      schedule,
      health: HEALTHY,
      desired: 0,
      asked: 0,
      demandedQueued: 0,
      full: false,
      limited: { jobs: 0, runners: 0 },
      peaks: [],
    });
    state.declare(spec, declaration, schedule, now, now);
    state.updateDemand(now);
    return state;
  }

  /**
   * Restores the set of the previous run, as admitted by this run. Its runners are listed again,
   * because what happened between the two runs is found in visibility only.
   *
   * @param admitted - definition of the set; `at`: time of the admission (ms since the epoch)
   */
  static restore(
    carried: CarriedSetState,
    { spec, declaration: { holds = [], paused, ...declaration }, schedule, at }: AdmittedSet,
  ): SetState {
    // Limit the carried time: a set that accepted any time would consider every deadline expired.
    // Time may have passed since: a report that was received meanwhile must not look too late.
    const now = Math.max(at, limitTime(carried.facts.at, at + spec.relistMs));
    const { pausedBy = '', ...facts } = limitCarriedTimes(carried.facts, spec, now);
    const state = new SetState(
      {
        ...facts,
        spec,
        declaration,
        schedule,
        at: now,
        ...(paused === true ? { pausedBy } : {}),
        ...(facts.listedAt === undefined ? {} : { listedAt: 0 }),
      },
      carried,
    );
    for (const held of holds) state.holds.add(held);
    const scaleSet = restoreScaleSet(facts.scaleSet, now + spec.relistMs);
    if (scaleSet !== undefined && spec.scaleSet !== undefined) state.facts.scaleSet = scaleSet;
    else delete state.facts.scaleSet;
    for (const field of ['clusterLimit', 'observedAt', 'placed'] as const)
      delete state.facts[field];
    if (spec.capacity === 'observed')
      Object.assign(state.facts, restoreCapacity(facts, { now, latest: now + spec.relistMs }));
    // The listener may have ended meanwhile.
    delete state.facts.listenerAt;
    state.reschedule(schedule, at, state.facts.at);
    return state;
  }

  /** Returns the state to carry over with continue-as-new. */
  carry(): CarriedSetState {
    const { spec: _s, declaration: _d, schedule: _c, rescheduleAt: _r, ...facts } = this.facts;
    return {
      facts,
      guards: encodeEnded(this.facts.spec.name, this.guards),
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
    { holds, paused, ...declaration }: RunnerSetInput,
    schedule: ActiveSchedule,
    askedAt: number,
    now: number,
  ): void {
    const { facts } = this;
    if (spec.templateHash !== facts.spec.templateHash) {
      facts.health = HEALTHY;
      delete facts.runnerVersion;
      delete facts.clusterLimit;
    }
    if (spec.capacity !== 'observed') delete facts.clusterLimit;
    Object.assign(facts, { spec, declaration });
    this.limits = new JobLimits(spec.limits);
    this.jobs.limits = spec.jobLimits ?? DEFAULT_JOB_LIMITS;
    if (spec.limits.maxRunnerHours === undefined) delete facts.time;
    if (spec.scaleSet === undefined) delete facts.scaleSet;
    delete facts.listenerAt;
    this.reschedule(schedule, askedAt, now);
    delete facts.queueCheckStartedAt;
    delete facts.rerouteAt;
    if (holds !== undefined) this.#setHolds(holds);
    if (paused === true) facts.pausedBy ??= '';
    if (paused === false) delete facts.pausedBy;
  }

  /** Returns the last declaration of the set, with the holds and pauses of operators. */
  currentDeclaration(): RunnerSetInput {
    const { declaration, pausedBy } = this.facts;
    return {
      ...declaration,
      ...(this.holds.size === 0 ? {} : { holds: [...this.holds] }),
      ...omitUndefined({ paused: pausedBy === undefined ? undefined : true }),
    };
  }

  /**
   * Sets the active schedule. Only the distance to the next change is taken from the clock of the
   * worker that evaluated it, because that clock may differ from the set's. The schedule is
   * evaluated again after a while in any case, because that clock may have been wrong.
   *
   * @param askedAt - time that the worker's clock showed (ms since the epoch)
   * @param now - the set's clock (ms since the epoch)
   */
  reschedule(schedule: ActiveSchedule, askedAt: number, now: number): void {
    const { facts } = this;
    facts.schedule = schedule;
    if (schedule.until === undefined) delete facts.rescheduleAt;
    else
      facts.rescheduleAt =
        now +
        Math.min(Math.max(schedule.until - askedAt, MIN_SCHEDULE_INTERVAL_MS), facts.spec.relistMs);
  }

  pause(reason: string): void {
    this.facts.pausedBy = reason;
  }

  /** Resumes the set. This also closes the breaker. */
  resume(): void {
    delete this.facts.pausedBy;
    this.facts.health = HEALTHY;
  }

  /** Places a runner on hold, or releases it. */
  hold(nameOrId: string, release: boolean): void {
    const others = [...this.holds].filter((held) => !this.isSame(held, nameOrId));
    this.#setHolds(release ? others : [...others, nameOrId]);
  }

  /** Whether two identifiers, each a runner name or a workflow id, refer to the same runner. */
  isSame(one: string, other: string): boolean {
    const runner = this.runners.find(one);
    return one === other || (runner !== undefined && runner === this.runners.find(other));
  }

  end(reason: string, { cancelled = false }: { readonly cancelled?: boolean } = {}): void {
    this.facts.ending ??= reason;
    if (cancelled) this.facts.cancelled = true;
    // Only a list taken from now on can show that no runner remains.
    this.#requireList();
  }

  /**
   * Applies job events. Events about jobs that may have completed and been forgotten are skipped.
   */
  jobEvents(events: readonly JobEvent[], now: number): void {
    for (const event of events) {
      if (this.jobs.isOlderThanHistory(event)) continue;
      // Use the event's own time, which stays the same when its delivery is sent again.
      const at = Math.min(event.at, now);
      this.facts.lastJobEventAt = Math.max(this.facts.lastJobEventAt ?? 0, at);
      this.#jobEvent(event, now);
    }
  }

  /**
   * Applies a job event from the webhook, from another set or from a queue check. An event found by
   * a check may be older than the end of the job's runner.
   */
  #jobEvent(event: JobEvent, now: number): void {
    const { facts } = this;
    // A runner of another organization may have the same name as a runner of this set.
    if (facts.spec.scope !== undefined && !scopeHolds(facts.spec.scope, event.repository)) return;
    const before = this.jobs.get(event);
    const job = this.jobs.applyEvent(event, now);
    this.passing.heard(event, before, job);
    const name = event.runnerName;
    const workflowId =
      name === undefined ? undefined : runnerWorkflowIdFromName(facts.spec.name, name);
    if (name === undefined || workflowId === undefined) return;
    const runner = this.runners.get(workflowId);
    if (runner === undefined) {
      // The runner has ended: the end of its job is confirmed, so its guard is removed, and its job
      // has completed. Before the first list this is unknown.
      this.guards.delete(workflowId);
      if (facts.listedAt !== undefined && job?.state === 'assigned')
        this.jobs.runnerEnded(workflowId, now);
      return;
    }
    Object.assign(runner, { runnerName: name, jobReported: true });
    if (job?.state === 'assigned' && before?.state !== 'assigned') this.#onJobTaken(runner, now);
    if (runner.state === 'draining') return;
    if (job?.state === 'assigned' || runner.ephemeral || this.jobs.runningOn(name))
      this.runners.setState(runner, 'busy', now);
    else if (event.action === 'completed' && runner.state === 'busy')
      this.runners.setState(runner, 'idle', now);
  }

  /**
   * Applies a report about the scale set. The runners of started and completed jobs are those that
   * GitHub names, whatever job they were started for.
   */
  onScaleSetReport(received: ScaleSetReport, now: number): void {
    const { facts } = this;
    const { scaleSet, relistMs } = facts.spec;
    const report = limitTimes(received, now + relistMs);
    if (scaleSet === undefined || report === undefined) return;
    facts.scaleSet = applyNumbers(facts.scaleSet, report, relistMs);
    for (const name of report.started) this.#onScaleSetJob(name, 'started', now);
    for (const name of report.completed) this.#onScaleSetJob(name, 'completed', now);
  }

  #onScaleSetJob(runnerName: string, event: 'started' | 'completed', now: number): void {
    const { facts, jobs } = this;
    const workflowId = runnerWorkflowIdFromName(facts.spec.name, runnerName);
    if (workflowId === undefined || facts.scaleSet === undefined) return;
    const runner = this.runners.get(workflowId);
    if (runner === undefined) {
      if (event === 'completed' && this.guards.delete(workflowId)) jobs.completedTotal++;
      return;
    }
    if (!runner.jobReported) {
      jobs.startedTotal++;
      this.#onJobTaken(runner, now);
    }
    Object.assign(runner, { runnerName, jobReported: true });
    const { done } = facts.scaleSet;
    if (event === 'completed' && !done.includes(workflowId)) {
      jobs.completedTotal++;
      facts.scaleSet = { ...facts.scaleSet, done: [...done, workflowId] };
    }
    if (runner.state !== 'draining') this.runners.setState(runner, 'busy', now);
  }

  /** Returns whether the scale set has reported the end of the runner's job, and forgets it. */
  #takeDone(workflowId: string): boolean {
    const { scaleSet } = this.facts;
    if (scaleSet?.done.includes(workflowId) !== true) return false;
    const done = scaleSet.done.filter((id) => id !== workflowId);
    this.facts.scaleSet = { ...scaleSet, done };
    return true;
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
    this.#onJobTaken(runner, now);
    if (runner.state === 'starting' || runner.state === 'idle')
      this.runners.setState(runner, 'busy', now);
  }

  #onJobTaken({ templateHash }: SetRunner, now: number): void {
    const { facts } = this;
    if (templateHash === facts.spec.templateHash) facts.health = recordReady(facts.health, now);
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
    this.#releaseHold(end.workflowId, runner?.runnerName ?? end.runnerName);
    const isDone = this.#takeDone(end.workflowId);
    const hadJob = this.jobs.runnerEnded(end.workflowId, now);
    if (runner !== undefined && runner.templateHash === facts.spec.templateHash) {
      const ended = { startedAt: runner.startedAt, wasReady };
      facts.health = recordEnd(facts.health, end, ended, now, facts.spec);
    }
    const isReported = facts.spec.scaleSet === undefined ? runner?.jobReported === true : isDone;
    const unaccounted = end.ranJob && !hadJob && runner?.ephemeral === true && !isReported;
    if (unaccounted && this.bounds.kind === 'elastic') this.guards.set(end.workflowId, now);
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
    for (const runner of free) if (runner.state === 'busy') this.#onJobTaken(runner, now);
    for (const workflowId of gone) this.#onRunnerMissing(workflowId, now);
    const isOutdated = this.listing && this.facts.listStartedAt === undefined;
    this.facts.listedAt = isOutdated ? 0 : now;
    this.listing = false;
  }

  /** Records the start of an observation. @returns the workflow IDs of the runners to look for */
  onObservationStarted(now: number): string[] {
    this.observing = true;
    this.facts.observedAt = now;
    return this.runners
      .all()
      .filter(isUnplaced)
      .slice(0, MAX_OBSERVED)
      .map(({ workflowId }) => workflowId);
  }

  /**
   * Applies an observation of the cluster.
   * @param observed - workflow IDs of the runners that it looked for
   */
  onObserved(observed: readonly string[], found: CapacityObservation, now: number): void {
    const { facts } = this;
    this.observing = false;
    if (!this.observesCapacity) return;
    applyObservation(this.runners.all(), new Set(observed), found, now);
    const { limit, withdraw } = decideCapacity(
      {
        before: facts.clusterLimit,
        placed: Math.max(found.placed, facts.placed ?? 0),
        // The others do not leave because of the limit, so they would block each probe.
        waiting: this.runners
          .all()
          .filter(
            (runner) =>
              isUnplaced(runner) &&
              runner.templateHash === facts.spec.templateHash &&
              runner.withdrawn !== true &&
              !this.isHeld(runner),
          ),
        max: minAndMax(this.declaredBounds).max,
      },
      now,
    );
    facts.placed = found.placed;
    delete facts.clusterLimit;
    if (limit !== undefined) facts.clusterLimit = limit;
    for (const workflowId of withdraw)
      Object.assign(this.runners.get(workflowId) ?? {}, { withdrawn: true });
  }

  /** Handles an observation that failed. */
  onObservationFailed(): void {
    this.observing = false;
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

  onQueueCheckStarted(now: number): void {
    this.facts.queueCheckStartedAt = now;
  }

  /**
   * Applies the result of a queue check. A complete check also removes the guards that are older
   * than the check.
   */
  onQueueChecked(look: QueueCheckResult, now: number): void {
    const [{ facts }, checkedAt] = [this, Math.min(look.checkedAt, now)];
    this.jobs.applyQueueCheck(look, checkedAt, now, (event) => this.#jobEvent(event, now));
    if (look.endedSets.length > 0) this.jobs.reclaim(new Set(look.endedSets), now);
    if (look.complete) this.#expireGuards((endedAt) => endedAt <= checkedAt);
    facts.checkedAt = Math.max(facts.checkedAt ?? 0, checkedAt);
    delete facts.queueCheckFailure;
    if (look.continues === true) return;
    const { budgetUntil, unsupported } = look;
    const since = facts.incomplete?.since ?? checkedAt;
    if (look.complete) delete facts.incomplete;
    else facts.incomplete = { since, ...omitUndefined({ budgetUntil, unsupported }) };
  }

  onQueueCheckFailed(reason: string, now: number): void {
    this.facts.queueCheckFailure = reason;
    this.facts.incomplete = { since: this.facts.incomplete?.since ?? now };
  }

  // --- Derived values.

  /** Size according to the declaration and its schedules. */
  get declaredBounds(): ScaleBounds {
    const { spec, schedule } = this.facts;
    return spec.schedules[schedule.index ?? -1]?.bounds ?? spec.bounds;
  }

  /** Whether the size follows the capacity of the cluster. A fixed number of runners does not. */
  get observesCapacity(): boolean {
    return this.facts.spec.capacity === 'observed' && this.declaredBounds.kind === 'elastic';
  }

  /** Size that the cluster permits now. */
  get bounds(): ScaleBounds {
    const { clusterLimit } = this.facts;
    return clusterLimit === undefined
      ? this.declaredBounds
      : limitBounds(this.declaredBounds, clusterLimit.limit + clusterLimit.probe);
  }

  /**
   * Records the current demand. Called once after all events of a moment, because it evaluates
   * every runner.
   */
  updateDemand(now: number): void {
    const { facts } = this;
    facts.at = now;
    this.#recordReadyRunners(now);
    this.#expireGuards((endedAt) => endedAt + facts.spec.recreationGuardMs <= now);
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

  isHeld({ workflowId, runnerName }: { workflowId: string; runnerName?: string }): boolean {
    return this.holds.has(workflowId) || (runnerName !== undefined && this.holds.has(runnerName));
  }

  /**
   * Returns the number of runners that are not replaced yet. It never exceeds the number of jobs
   * that the missing events may be about.
   */
  guardedRunners(): number {
    if (this.guards.size === 0) return 0;
    const { scaleSet } = this.facts;
    if (scaleSet !== undefined) return Math.min(this.guards.size, scaleSet.assigned);
    return Math.max(
      0,
      Math.min(
        this.guards.size,
        this.jobs.queued - this.jobs.confirmedSince(Math.max(...this.guards.values())),
      ),
    );
  }

  /** Removes a runner that ended without notifying the set, so its result is unknown. */
  #onRunnerMissing(workflowId: string, now: number): void {
    this.#takeDone(workflowId);
    this.#releaseHold(workflowId, this.runners.remove(workflowId, now)?.runnerName);
    this.jobs.runnerEnded(workflowId, now);
  }

  /** Releases the hold of a runner that has ended. */
  #releaseHold(workflowId: string, runnerName: string | undefined): void {
    this.holds.delete(workflowId);
    if (runnerName !== undefined) this.holds.delete(runnerName);
  }

  #setHolds(held: readonly string[]): void {
    this.holds.clear();
    for (const nameOrId of held) this.holds.add(nameOrId);
  }

  #expireGuards(isOver: (endedAt: number) => boolean): void {
    for (const [workflowId, endedAt] of this.guards)
      if (isOver(endedAt)) this.guards.delete(workflowId);
  }
}
