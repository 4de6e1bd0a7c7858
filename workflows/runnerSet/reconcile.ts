import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { condition, log, makeContinueAsNewFunc, sleep, workflowInfo } from '@temporalio/workflow';
import {
  observationActivities,
  queueCheckActivities,
  temporalActivities,
  toCallResult,
  workerActivities,
} from '../shared/activityProxies.ts';
import type { RunnerSetStatus } from '../../core/contract/index.ts';
import { decideSet, QUEUE_CHECK_UNSUPPORTED, type SetDecision } from './decide.ts';
import { type GatedSignal, SignalGate } from '../shared/signalGate.ts';
import { SET_TASK_TIMEOUT_MS } from '../../core/domain/setPriority.ts';
import { carryWithinLimit, type NextRunArgs } from './carriedSize.ts';
import { SetCommands } from './commands.ts';
import { RunLength } from './runLength.ts';
import { listenerInput } from './scaleSetDemand.ts';
import { reschedule } from './setFacts.ts';
import type { SetState } from './state.ts';
import { setStatus } from './status.ts';
import type { Timestamped } from '../../core/activities/index.ts';
import { listAndVerify, type VerifiedList } from './runnerList.ts';
import { startRunners } from './startRunners.ts';
import { SetDisplay } from './setDisplay.ts';
import { WakeTimer } from './wakeTimer.ts';

/** Maximum number of runners started by one activity. */
const BATCH = 100;
/** Maximum number of runners drained by one activity. Each drain needs a list of the last seconds. */
const DRAIN_BATCH = 500;
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
  readonly #timer = new WakeTimer();
  #gate = new SignalGate([]);
  readonly #display = new SetDisplay();

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
    this.#display.publish(this.state, this.#now);
  }

  /** Receives more signals, in an activation of their own, which the activity starts. */
  async #takeMoreSignals(): Promise<Timestamped> {
    const moment = await workerActivities('Take in more signals').getTime();
    this.#gate.open();
    return moment;
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
    const timer = this.#timer.wakeAt(Math.min(wakeAt, this.#now + MAX_WAIT_MS), this.#now);
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
    this.#inbox.push({ change: (state, now) => reschedule(state.facts, schedule, at, now) });
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
    void toCallResult(listAndVerify(state, known)).then(async (called) => {
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
   * Starts a queue check without waiting for it: a slow CI server must not delay what events
   * require. The result arrives as a signal, in whichever run is current then.
   */
  #checkQueue(): void {
    const { state } = this;
    const { name, scope, credential, labels, queueCheckMs, guardCheckMs } = state.facts.spec;
    if (this.#checkingQueue || scope === undefined) return;
    this.#checkingQueue = true;
    const requestedAt = this.#now;
    state.jobReports.onQueueCheckStarted(requestedAt);
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
        this.receive((set, now) => set.jobReports.onQueueCheckFailed(why, now));
      },
    );
  }

  /** Observes the cluster without waiting for it: nothing that starts now depends on the result. */
  #observe(): void {
    const { name, template } = this.state.facts.spec;
    const runners = this.state.observer.onStarted(this.#now);
    const input = { set: name, runners, ...omitUndefined({ namespace: template.namespace }) };
    void toCallResult(observationActivities().observeCapacity(input)).then((called) => {
      if (called.kind !== 'done') return this.receive((state) => state.observer.onFailed());
      const { value: found } = called;
      this.#trustedNow = Math.max(this.#trustedNow, found.at);
      this.#length.countIteration();
      return this.#inbox.push({
        change: (state, now) => state.observer.onObserved(runners, found, now),
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
    const { at, rejected, message = 'refused' } = await startRunners(this.state, count, this.#now);
    if (rejected.length > 0)
      this.#inbox.push({ change: (state, now) => state.onStartRejected(rejected, message, now) });
    return { at };
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
