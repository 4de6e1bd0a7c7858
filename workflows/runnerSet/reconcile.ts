import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  CancellationScope,
  condition,
  isCancellation,
  log,
  makeContinueAsNewFunc,
  setCurrentDetails,
  sleep,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import {
  localStartRunners,
  observationActivities,
  queueCheckActivities,
  toCallResult,
  temporalActivities,
  workerActivities,
} from '../shared/activityProxies.ts';
import {
  SET_CAPACITY_MEMO,
  SET_DELETION_MEMO,
  SET_ROUTING_MEMO,
  type RunnerSetStatus,
  type SetDeletion,
  type SetRoutingInfo,
} from '../../core/contract/index.ts';
import {
  QUEUE_CHECK_UNSUPPORTED,
  decideSet,
  mayNotifyEndEarly,
  mayNotifyEndLate,
  needsBusyEvents,
  type SetDecision,
} from './decide.ts';
import { comparableText } from '../../core/domain/knownRunner.ts';
import { SignalGate, type GatedSignal } from '../shared/signalGate.ts';
import { routingInfo, scaleSetRoutingInfo } from '../../core/domain/routingInfo.ts';
import { SET_TASK_TIMEOUT_MS } from '../../core/domain/setPriority.ts';
import { randomSuffix, runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import { carryWithinLimit, type NextRunArgs } from './carriedSize.ts';
import { SetCommands } from './commands.ts';
import { RunLength } from './runLength.ts';
import { listenerInput } from './scaleSetDemand.ts';
import { advertisedCapacity } from './size.ts';
import type { SetState } from './state.ts';
import { areDetailsDue, setDetails, setStatus } from './status.ts';
import type {
  HoldfastActivities,
  ListedRunner,
  StartRunnersInput,
  Timestamped,
} from '../../core/activities/index.ts';

/** Maximum number of runners started by one activity. */
const BATCH = 100;
/** Maximum number of runners started in a workflow task: queries of the set wait meanwhile. */
const LOCAL_BATCH = 5;
/** Maximum number of runners drained by one activity. Each drain needs a list of the last seconds. */
const DRAIN_BATCH = 500;
/** Maximum number of runners whose end one activity checks: about 150 KiB. */
const MAX_DOUBTFUL = 2_000;
/**
 * Maximum age of a check result of another set that is reused, as a share of the interval between
 * checks. MAX_SHARED_CHECK_AGE_MS is a further limit.
 */
const SHARED_CHECK_AGE_RATIO = 1 / 5;
const MAX_SHARED_CHECK_AGE_MS = 60_000;
/** Maximum number of jobs that one check queries individually. */
const MAX_OVERDUE = 20;
/** Maximum time to wait (ms). The timer for a schedule that is months away is renewed every day. */
const MAX_WAIT_MS = 24 * 3_600_000;

/** Change that an event makes to the state of the set. */
type StateChange = (state: SetState, now: number) => void;

interface ReceiveOptions {
  /** Number of job events or runner events in the signal. @default 0 */
  readonly size?: number;
  /** Time at which the event was sent, by the sender's clock (ms since the epoch). */
  readonly at?: number;
}

/** @property fromSignal - the time comes only from a sender's signal */
interface Moment extends Timestamped {
  readonly fromSignal?: true;
}

/** List of the runners, with those of the doubtful ones that have ended. */
interface VerifiedList extends Timestamped {
  readonly runners: readonly ListedRunner[];
  readonly ended: readonly string[];
}

interface Alarm {
  readonly at: number;
  readonly scope: CancellationScope;
  fired: boolean;
}

/**
 * State of a set, with the loop that carries out the decisions based on it.
 *
 * Decisions use the time that activities and timers have recorded in the history, never the
 * workflow's own clock. During replay that clock shows another time in two cases: after a local
 * activity (the time of its completion instead of the start of the workflow task), and after a
 * query to a workflow that was not in the worker's cache (the query executes what has happened
 * since the last workflow task at the time of that task).
 */
export class RunningSet {
  readonly state: SetState;
  readonly #commands: SetCommands;
  /** Changes that have been received and not yet applied to the state. */
  readonly #inbox: { readonly change: StateChange; readonly at?: number }[] = [];
  #now: number;
  /**
   * Latest time that an activity or a timer of this run has recorded (ms since the epoch). Signals
   * do not change it.
   */
  #trustedNow = 0;
  /**
   * Whether a queue check of this run is in progress. A check of the previous run may be in
   * progress too.
   */
  #checkingQueue = false;
  readonly #length = new RunLength();
  #timer: Alarm | undefined;
  #gate = new SignalGate([]);
  /** Time of the last update of the details (ms since the epoch). */
  #detailsAt = 0;

  /** @param commandsDone - ids of the commands that previous runs have executed */
  constructor(state: SetState, commandsDone: readonly string[]) {
    this.state = state;
    this.#commands = new SetCommands(commandsDone);
    this.#now = state.facts.at;
  }

  /** Receives these signals from now on. */
  openGate(signals: readonly GatedSignal[]): void {
    this.#gate = new SignalGate(signals);
    this.#gate.open();
  }

  /**
   * Receives an event. It is applied with the time that it carries, or with the time that the loop
   * reads from a worker, once for all events that arrive meanwhile.
   */
  receive(change: StateChange, { size = 0, at }: ReceiveOptions = {}): void {
    this.#inbox.push({ change, ...omitUndefined({ at }) });
    this.#length.countSignal(size);
  }

  /** Receives a command from any sender. It is executed before any other action is started. */
  receiveCommand(request: unknown): void {
    this.#commands.receive(request);
    this.#length.countCommand();
  }

  status(request?: unknown): RunnerSetStatus {
    return setStatus(this.state, this.#now, request);
  }

  /** Runs the loop until the set has ended. */
  async run(): Promise<void> {
    for (;;) {
      this.#drainInbox();
      if (this.#gate.isFull) {
        this.#tick(await this.#survive(this.#takeMoreSignals()));
        continue;
      }
      const decision = decideSet(this.state, this.#now);
      if (this.#mayContinueAsNew()) await this.#continueAsNew();
      if (decision.ended && this.#commands.allReplied) return;
      const acting = this.#runNextCommand() ?? this.#act(decision);
      const woken = acting === undefined ? await this.#wait(decision) : undefined;
      this.#tick(
        woken ?? (await this.#survive(acting ?? workerActivities('Read the time').getTime())),
      );
    }
  }

  /**
   * Returns the time of a call's completion. If the call fails permanently, continues after a
   * delay, so that the loop calls again: a set that ended would leave its runners without a set.
   */
  async #survive(call: Promise<Moment>): Promise<Moment> {
    const called = await toCallResult(call);
    if (called.kind === 'done') return called.value;
    const { name, initialRetryMs } = this.state.facts.spec;
    const why = called.kind === 'failed' ? called.message : called.kind;
    log.warn('failed call of a set; retrying', { set: name, why });
    await sleep(initialRetryMs, { summary: 'Retry after a failed call' });
    return { at: this.#now + initialRetryMs };
  }

  #tick({ at, fromSignal }: Moment): void {
    this.#now = Math.max(this.#now, at);
    if (fromSignal === true) return;
    this.#trustedNow = Math.max(this.#trustedNow, at);
    this.#length.countIteration();
  }

  #drainInbox(): void {
    this.#gate.restart();
    for (const { change } of this.#inbox.splice(0)) change(this.state, this.#now);
    this.state.updateDemand(this.#now);
    this.#publishStatus();
  }

  /** Receives more signals, in an activation of their own, which the activity starts. */
  async #takeMoreSignals(): Promise<Timestamped> {
    const moment = await workerActivities('Take in more signals').getTime();
    this.#gate.open();
    return moment;
  }

  #publishStatus(): void {
    if (areDetailsDue(this.state, this.#detailsAt, this.#now)) {
      setCurrentDetails(setDetails(this.state, this.#now));
      this.#detailsAt = this.#now;
    }
    const { spec, full, ending } = this.state.facts;
    const { memo = {} } = workflowInfo();
    const routing =
      spec.scaleSet === undefined
        ? spec.scope && routingInfo(spec, full, ending !== undefined)
        : scaleSetRoutingInfo(spec);
    const capacity = spec.scaleSet === undefined ? undefined : advertisedCapacity(this.state);
    const change = {
      ...(routing === undefined || sameRouting(memo[SET_ROUTING_MEMO], routing)
        ? {}
        : { [SET_ROUTING_MEMO]: routing }),
      ...(ending === undefined || memo[SET_DELETION_MEMO] !== undefined
        ? {}
        : { [SET_DELETION_MEMO]: { reason: ending } satisfies SetDeletion }),
      ...((memo[SET_CAPACITY_MEMO] ?? undefined) === capacity
        ? {}
        : { [SET_CAPACITY_MEMO]: capacity ?? null }),
    };
    if (Object.keys(change).length > 0) upsertMemo(change);
  }

  /**
   * Executes the next command.
   *
   * @returns `undefined` if there is no command
   */
  #runNextCommand(): Promise<Moment> | undefined {
    if (!this.#commands.hasNext) return undefined;
    return this.#commands
      .executeNext(this.state, (at) => (this.#now = Math.max(this.#now, at)))
      .then((at) => ({ at, fromSignal: true }));
  }

  /**
   * Starts the next action of the decision.
   *
   * @returns the action, after which the decision must be made again; `undefined` if there is
   * nothing to do now
   */
  #act(decision: SetDecision): Promise<Timestamped> | undefined {
    if (decision.evaluateSchedule) return this.#evaluateSchedule();
    if (decision.startListener) return this.#startListener();
    if (decision.listRunners) this.#list();
    if (decision.observe) this.#observe();
    if (decision.checkQueue) this.#checkQueue();
    if (decision.rerouteJobs) return this.#rerouteJobs();
    if (decision.start > 0) return this.#start(Math.min(decision.start, BATCH));
    if (decision.drain.length > 0) return this.#drain(decision.drain.slice(0, DRAIN_BATCH));
    return undefined;
  }

  /**
   * Waits until a timer fires, a signal or command arrives, or the run may end or continue as new.
   *
   * @returns the time, if it is known: the timer's, that of the received events, or that of a
   * command, which reads the time itself
   */
  async #wait({ wakeAt, ended }: SetDecision): Promise<Moment | undefined> {
    const timer = this.#wakeAt(Math.min(wakeAt, this.#now + MAX_WAIT_MS));
    await condition(
      () =>
        timer.fired ||
        this.#commands.hasNext ||
        this.#inbox.length > 0 ||
        this.#gate.isFull ||
        this.#mayContinueAsNew() ||
        (ended && this.#commands.allReplied),
    );
    if (timer.fired) this.#trustedNow = Math.max(this.#trustedNow, timer.at);
    if (this.#inbox.length > 0) return this.#signalTime();
    if (timer.fired) return { at: timer.at };
    return this.#commands.hasNext ? { at: this.#now, fromSignal: true } : undefined;
  }

  /**
   * Returns the latest time of the received events, if it is plausible. A timer fires at least for
   * each list of the runners, so the time of an event is never much later than that of the last
   * timer. Anyone may send signals, and a set that accepted any time would consider every deadline
   * expired, permanently.
   */
  #signalTime(): Moment | undefined {
    const at = this.#inbox.reduce(
      (latest, item) => Math.max(latest, item.at ?? Number.POSITIVE_INFINITY),
      0,
    );
    return at <= this.#trustedNow + this.state.facts.spec.relistMs
      ? { at, fromSignal: true }
      : undefined;
  }

  /**
   * Returns a timer for the given time. There is one timer, which is kept as long as it is early
   * enough: most events change no deadline, and must not cost a timer each.
   */
  #wakeAt(at: number): Alarm {
    if (
      this.#timer !== undefined &&
      !this.#timer.fired &&
      this.#timer.at <= at &&
      this.#timer.at > this.#now
    )
      return this.#timer;
    this.#timer?.scope.cancel();
    const timer: Alarm = { at, scope: new CancellationScope(), fired: false };
    this.#timer = timer;
    const sleeping = timer.scope.run(
      async () => await sleep(Math.max(1, at - this.#now), { summary: 'Wait for the next change' }),
    );
    void sleeping.then(
      () => (timer.fired = true),
      (error: unknown) => {
        if (!isCancellation(error)) throw error;
      },
    );
    return timer;
  }

  #mayContinueAsNew(): boolean {
    // Only the run that received the cancellation can end as Cancelled, so it continues as long as
    // possible.
    const isTime =
      workflowInfo().continueAsNewSuggested ||
      (this.#length.isLong && this.state.facts.cancelled !== true);
    return isTime && this.#commands.allReplied && !this.#gate.isFull;
  }

  /**
   * Continues in a new run. Nothing may be received between applying the inbox and this call. The
   * memo has to be passed on: without it the webhook would not know which jobs the set serves until
   * a worker has processed the new run.
   */
  async #continueAsNew(): Promise<never> {
    const memo = workflowInfo().memo ?? {};
    const { args, bytes, dropped } = carryWithinLimit(this.state, this.#commands.completedIds());
    if (dropped !== undefined)
      log.warn('state of a set is too large to carry over; dropped records', {
        set: this.state.facts.spec.name,
        bytes,
        ...dropped,
      });
    return await makeContinueAsNewFunc<(...next: NextRunArgs) => Promise<unknown>>({
      memo,
      workflowTaskTimeout: SET_TASK_TIMEOUT_MS,
    })(...args);
  }

  async #evaluateSchedule(): Promise<Timestamped> {
    const { at, schedule } = await workerActivities('Evaluate the schedules').evaluateSchedules({
      schedules: this.state.facts.spec.schedules,
    });
    this.#inbox.push({ change: (state, now) => state.reschedule(schedule, at, now) });
    return { at };
  }

  /**
   * Requests a list of the runners without waiting for it: starts and commands do not need it, and
   * visibility may be unavailable for long.
   */
  #list(): void {
    const { state } = this;
    const { name, initialRetryMs } = state.facts.spec;
    state.onListStarted(this.#now);
    // Runners that are started meanwhile need not be listed, and may not exist yet.
    const known = new Set(state.runners.all().map(({ workflowId }) => workflowId));
    void toCallResult(this.#listAndVerify(known)).then(async (called) => {
      if (called.kind === 'done') return this.#receiveList(called.value);
      const why = called.kind === 'failed' ? called.message : called.kind;
      log.warn('list of the runners of a set failed; trying again', { set: name, why });
      await sleep(initialRetryMs, { summary: 'Retry after a failed list of the runners' });
      return this.receive((set) => set.onListFailed());
    });
  }

  #receiveList({ at, runners, ended }: VerifiedList): void {
    this.#trustedNow = Math.max(this.#trustedNow, at);
    this.#length.countIteration();
    this.#inbox.push({ change: (state, now) => state.onRunnersListed(runners, ended, now), at });
  }

  /**
   * Lists the runners and verifies the doubtful ones.
   * @param known - workflow IDs of the runners that existed when the list was requested
   */
  async #listAndVerify(known: ReadonlySet<string>): Promise<VerifiedList> {
    const { at, runners } = await this.#listParts();
    const listed = new Set(runners.map(({ workflowId }) => workflowId));
    const doubtful = this.state
      .unverified(runners, at)
      .filter((workflowId) => known.has(workflowId) || listed.has(workflowId));
    const verified = { at, runners, ended: [] as string[] };
    for (let from = 0; from < doubtful.length; from += MAX_DOUBTFUL) {
      const workflowIds = doubtful.slice(from, from + MAX_DOUBTFUL);
      const found = await temporalActivities(
        `Check whether ${workflowIds.length} runners have ended`,
      ).findEndedRunners({ workflowIds });
      verified.at = found.at;
      verified.ended.push(...found.ended);
    }
    return verified;
  }

  /**
   * Lists the runners. Those that are as the set knows them are not transferred, because a list of
   * all may exceed what a workflow can receive.
   *
   * @returns the time of the first part, because runners started since need not be in the list
   */
  async #listParts(): Promise<Timestamped & { runners: ListedRunner[] }> {
    const set = this.state.facts.spec.name;
    const asKnown = this.state.runners.asListed();
    const known = this.state.runners.all().map((runner) => comparableText(set, runner));
    const part = await temporalActivities('List the runners').listRunners({ set, known });
    const changed = [...part.runners];
    let { unconfirmed } = part;
    for (let page = part.next; page !== undefined;) {
      const more = await temporalActivities('List more runners').listRunners({ set, known, page });
      changed.push(...more.runners);
      const still = new Set(more.unconfirmed);
      unconfirmed = unconfirmed.filter((index) => still.has(index));
      page = more.next;
    }
    const doubted = new Set(unconfirmed);
    const confirmed = asKnown.filter((_runner, index) => !doubted.has(index));
    return { at: part.at, runners: [...confirmed, ...changed] };
  }

  /**
   * Starts a queue check without waiting for it: a slow CI server must not delay what events
   * require. The result arrives as a signal, in whichever run is current then.
   */
  #checkQueue(): void {
    const { state } = this;
    const { name, scope, credential, labels, queueCheckMs, guardCheckMs } = state.facts.spec;
    if (this.#checkingQueue || scope === undefined) return;
    this.#checkingQueue = true;
    const requestedAt = this.#now;
    state.onQueueCheckStarted(requestedAt);
    const maxAgeMs = Math.min(
      SHARED_CHECK_AGE_RATIO * (state.guards.size > 0 ? guardCheckMs : queueCheckMs),
      MAX_SHARED_CHECK_AGE_MS,
    );
    const { here: reroutedHere, to: reroutedTo } = state.jobs.rerouted();
    const overdue = state.jobs.staleJobs(requestedAt - queueCheckMs, MAX_OVERDUE);
    const look = {
      set: name,
      taskQueue: workflowInfo().taskQueue,
      scope,
      credential,
      labels,
      requestedAt,
      maxAgeMs,
      overdue,
      reroutedHere,
      reroutedTo,
    };
    void toCallResult(queueCheckActivities(credential, scope).checkQueuedJobs(look)).then(
      (called) => {
        this.#checkingQueue = false;
        if (called.kind === 'done' && called.value.supported) return;
        const why = called.kind === 'failed' ? called.message : QUEUE_CHECK_UNSUPPORTED;
        this.receive((set, now) => set.onQueueCheckFailed(why, now));
      },
    );
  }

  /** Observes the cluster without waiting for it: nothing that starts now depends on the result. */
  #observe(): void {
    const { name, template } = this.state.facts.spec;
    const runners = this.state.onObservationStarted(this.#now);
    const input = { set: name, runners, ...omitUndefined({ namespace: template.namespace }) };
    void toCallResult(observationActivities().observeCapacity(input)).then((called) => {
      if (called.kind !== 'done') return this.receive((state) => state.onObservationFailed());
      const { value: found } = called;
      this.#trustedNow = Math.max(this.#trustedNow, found.at);
      this.#length.countIteration();
      return this.#inbox.push({
        change: (state, now) => state.onObserved(runners, found, now),
        at: found.at,
      });
    });
  }

  /** Starts the listener of the scale set, or sends the changed input to the running one. */
  async #startListener(): Promise<Timestamped> {
    const input = listenerInput(this.state.facts.spec);
    // Recorded first: a call that fails permanently must not block everything else.
    this.state.onListenerStarted(this.#now);
    if (input === undefined) return { at: this.#now };
    return await temporalActivities('Start the listener of the scale set').startListener(input);
  }

  async #rerouteJobs(): Promise<Timestamped> {
    const next = this.state.passing.next(this.state, this.#now);
    const done = await temporalActivities(`Reroute ${next.jobs.length} jobs`).rerouteJobs(next);
    this.#inbox.push({ change: (state, now) => state.passing.done(next, done, state, now) });
    return { at: done.at };
  }

  async #start(count: number): Promise<Timestamped> {
    const { name, templateHash, ephemeral, template, slots, priority } = this.state.facts.spec;
    const free = slots ? this.state.runners.freeSlots(count) : [];
    const traces = this.state.jobs.traces.take(count);
    const runners = Array.from({ length: count }, (_none, index) => {
      const [slot, trace] = [free[index], traces[index]];
      return {
        workflowId: runnerWorkflowId(name, randomSuffix(Math.random)),
        ...omitUndefined({ slot, traceparent: trace }),
      };
    });
    // Add them before they are started, so that an end that is reported immediately finds them.
    this.state.onRunnersStarting(runners, this.#now);
    const input = {
      set: name,
      templateHash,
      ephemeral,
      template,
      notifyBusy: needsBusyEvents(this.state, this.#now),
      notifyEndEarly: mayNotifyEndEarly(this.state),
      endMayWait: mayNotifyEndLate(this.state),
      priority,
      runners,
    };
    const { at, rejected, message = 'refused' } = await this.#startAll(input);
    if (rejected.length > 0)
      this.#inbox.push({ change: (state, now) => state.onStartRejected(rejected, message, now) });
    return { at };
  }

  /**
   * A few runners are started in this worker, as part of the workflow task: that saves a task for
   * most jobs. If the worker dies meanwhile, the next one starts the same workflow IDs. Not if they
   * have slots, which the next one may assign to other runners.
   */
  async #startAll(input: StartRunnersInput): ReturnType<HoldfastActivities['startRunners']> {
    const { length } = input.runners;
    if (length <= LOCAL_BATCH && !this.state.facts.spec.slots) {
      const called = await toCallResult(localStartRunners(input));
      if (called.kind === 'done') return called.value;
    }
    return await temporalActivities(`Start ${length} runners`).startRunners(input);
  }

  async #drain(drain: SetDecision['drain']): Promise<Timestamped> {
    const runners = [...drain];
    const { at, ended } = await temporalActivities(`Drain ${runners.length} runners`).drainRunners({
      runners,
    });
    this.#inbox.push({
      change: (state, now) =>
        state.onDrainRequested(
          runners.map(({ workflowId }) => workflowId),
          ended,
          now,
        ),
    });
    return { at };
  }
}

function sameRouting(memo: unknown, routing: SetRoutingInfo): boolean {
  return routingText((memo ?? {}) as Partial<SetRoutingInfo>) === routingText(routing);
}

/**
 * Returns the text for comparison, which is independent of the order of the fields, because a memo
 * does not preserve it.
 */
function routingText(routing: Partial<SetRoutingInfo>): string {
  const { ciServer, labels, scope, scopeKind, group, groupJobs, atCapacity, draining } = routing;
  return JSON.stringify([
    ciServer,
    labels,
    scope,
    scopeKind,
    group,
    groupJobs,
    atCapacity,
    draining,
  ]);
}
