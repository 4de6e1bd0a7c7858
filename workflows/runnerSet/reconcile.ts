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
  queueCheckActivities,
  toCallResult,
  temporalActivities,
  workerActivities,
} from '../shared/activityProxies.ts';
import {
  SET_ROUTING_MEMO,
  type RunnerSetStatus,
  type SetRoutingInfo,
} from '../../core/contract/index.ts';
import {
  QUEUE_CHECK_UNSUPPORTED,
  decideSet,
  mayNotifyEndEarly,
  needsBusyEvents,
  type SetDecision,
} from './plan.ts';
import { SignalGate, type GatedSignal } from '../shared/signalGate.ts';
import { routingInfo } from '../../core/domain/routingInfo.ts';
import { SET_TASK_TIMEOUT_MS } from '../../core/domain/setPriority.ts';
import { randomSuffix, runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import { carryWithinLimit, type NextRunArgs } from './carriedSize.ts';
import { SetCommands } from './commands.ts';
import { RunLength } from './runLength.ts';
import type { SetState } from './state.ts';
import { areDetailsDue, setDetails, setStatus } from './status.ts';
import type { ListedRunner, Timestamped } from '../../core/activities/index.ts';

/** Runners started by one activity. */
const BATCH = 100;
/** A look that another set has had is as good, if it is no older than this share of the pace of looks, and no older than that. */
const SHARED_CHECK_AGE_RATIO = 1 / 5;
const MAX_SHARED_CHECK_AGE_MS = 60_000;
/** Jobs that one look asks for one by one. */
const MAX_OVERDUE = 20;
/** A timer for a schedule that is months away is set again every day. */
const MAX_WAIT_MS = 24 * 3_600_000;

/** What a piece of news does to the set. */
type StateChange = (state: SetState, now: number) => void;

interface ReceiveOptions {
  /** Job events, or news of runners, in it. @default 0 */
  readonly size?: number;
  /** When it was told, by the clock of who told it (ms since the epoch). */
  readonly at?: number;
}

/** @property hearsay - only somebody's news tells that it is so late */
interface Moment extends Timestamped {
  readonly fromSignal?: true;
}

interface Alarm {
  readonly at: number;
  readonly scope: CancellationScope;
  fired: boolean;
}

/**
 * A set's state, and the loop that does what follows from it.
 *
 * Decisions go by the time that activities and timers have brought into the history, never by the workflow's own clock: that one shows
 * another time in a replay after a local activity (its end instead of the workflow task's start), and after a query to a workflow that was
 * not in the worker's cache (the query runs what has happened since the last workflow task at that task's time).
 */
export class RunningSet {
  readonly state: SetState;
  readonly #commands: SetCommands;
  /** What has come in and is not in the state yet. */
  readonly #inbox: { readonly news: StateChange; readonly at?: number }[] = [];
  #now: number;
  /** The latest time that an activity or a timer of this run has told; nobody's news. */
  #trustedNow = 0;
  /** A look of this run is under way; one of the run before may be, too. */
  #checkingQueue = false;
  readonly #length = new RunLength();
  #timer: Alarm | undefined;
  #gate = new SignalGate([]);
  /** Time of the last update of the details (ms since the epoch). */
  #detailsAt = 0;

  /** @param commandsDone - ids of the commands that the run before has carried out */
  constructor(state: SetState, commandsDone: readonly string[]) {
    this.state = state;
    this.#commands = new SetCommands(commandsDone);
    this.#now = state.facts.at;
  }

  /** Takes in these signals from now on. */
  openGate(signals: readonly GatedSignal[]): void {
    this.#gate = new SignalGate(signals);
    this.#gate.open();
  }

  /** News: taken in with the time that it tells, or which the loop has asked for, once for all that comes meanwhile. */
  receive(news: StateChange, { size = 0, at }: ReceiveOptions = {}): void {
    this.#inbox.push({ news, ...omitUndefined({ at }) });
    this.#length.countSignal(size);
  }

  /** A command, whoever sent it: carried out before anything else is begun. */
  receiveCommand(request: unknown): void {
    this.#commands.receive(request);
    this.#length.countCommand();
  }

  status(): RunnerSetStatus {
    return setStatus(this.state, this.#now);
  }

  /** Returns when the set has ended. */
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
        woken ?? (await this.#survive(acting ?? workerActivities('read the time').getTime())),
      );
    }
  }

  /** Makes a call again later if it fails for good: a set that ended would leave its runners without one. */
  async #survive(call: Promise<Moment>): Promise<Moment> {
    const called = await toCallResult(call);
    if (called.kind === 'done') return called.value;
    const { name, initialRetryMs } = this.state.facts.spec;
    const why = called.kind === 'failed' ? called.message : called.kind;
    log.warn('a call of a set failed; trying again', { set: name, why });
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
    for (const { news } of this.#inbox.splice(0)) news(this.state, this.#now);
    this.state.updateDemand(this.#now);
    this.#publishStatus();
  }

  /** In an activation of its own, which the activity begins. */
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
    if (spec.scope === undefined) return;
    const cover = routingInfo(spec, full, ending !== undefined);
    if (!sameRouting(workflowInfo().memo?.[SET_ROUTING_MEMO], cover))
      upsertMemo({ [SET_ROUTING_MEMO]: cover });
  }

  /** @returns `undefined`: there is no command */
  #runNextCommand(): Promise<Moment> | undefined {
    if (!this.#commands.hasNext) return undefined;
    return this.#commands
      .executeNext(this.state, (at) => (this.#now = Math.max(this.#now, at)))
      .then((at) => ({ at, fromSignal: true }));
  }

  /** @returns what is being done, after which everything may be different; `undefined`: nothing is to be done now */
  #act(decision: SetDecision): Promise<Timestamped> | undefined {
    if (decision.evaluateSchedule) return this.#evaluateSchedule();
    if (decision.listRunners) return this.#list();
    if (decision.checkQueue) this.#checkQueue();
    if (decision.rerouteJobs) return this.#rerouteJobs();
    if (decision.start > 0) return this.#start(Math.min(decision.start, BATCH));
    if (decision.drain.length > 0) return this.#drain(decision.drain.slice(0, BATCH));
    return undefined;
  }

  /** @returns the time, if it is known: its coming has ended the wait, or news that tells it, or a command, which asks for it */
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
   * The time that the inbox tells, if it tells one that can be: an alarm goes off at least with each list of the runners, so none is much later than the last. Signals may come from
   * anybody, and a set that believed any time would believe every deadline over, for good.
   */
  #signalTime(): Moment | undefined {
    const at = this.#inbox.reduce(
      (latest, news) => Math.max(latest, news.at ?? Number.POSITIVE_INFINITY),
      0,
    );
    return at <= this.#trustedNow + this.state.facts.spec.relistMs
      ? { at, fromSignal: true }
      : undefined;
  }

  /** One timer, which stays as long as it is early enough: most news moves nothing, and must not cost a timer each. */
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
      async () =>
        await sleep(Math.max(1, at - this.#now), { summary: 'until something changes by itself' }),
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
    // Only the run that was asked to cancel can end Cancelled: it goes on as long as it may.
    const isTime =
      workflowInfo().continueAsNewSuggested ||
      (this.#length.isLong && this.state.facts.cancelled !== true);
    return isTime && this.#commands.allReplied && !this.#gate.isFull;
  }

  /**
   * Nothing may lie between taking in the inbox and this. The memo has to be given along: without it the webhook would not know which jobs
   * the set is for, until a worker has got to the new run.
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
    const { at, schedule } = await workerActivities('evaluate the schedules').evaluateSchedules({
      schedules: this.state.facts.spec.schedules,
    });
    this.#inbox.push({ news: (state, now) => state.reschedule(schedule, at, now) });
    return { at };
  }

  async #list(): Promise<Timestamped> {
    const { at, runners } = await this.#listPages();
    const doubtful = this.state.unverified(runners, at);
    const found =
      doubtful.length === 0
        ? { at, ended: [] }
        : await temporalActivities(
            `check whether ${doubtful.length} runners have ended`,
          ).findEndedRunners({
            workflowIds: doubtful,
          });
    this.#inbox.push({ news: (state, now) => state.onRunnersListed(runners, found.ended, now) });
    return { at: found.at };
  }

  /** @returns with the time of the first page: what came up since need not be listed */
  async #listPages(): Promise<Timestamped & { runners: ListedRunner[] }> {
    const set = this.state.facts.spec.name;
    const { at, runners, next } = await temporalActivities('list the runners').listRunners({ set });
    const all = [...runners];
    for (let page = next; page !== undefined;) {
      const more = await temporalActivities('list more runners').listRunners({ set, page });
      all.push(...more.runners);
      page = more.next;
    }
    return { at, runners: all };
  }

  /** Nobody waits for it: a CI server that is slow must not hold up what events ask for. What it finds comes as a signal, to whichever run there is then. */
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

  async #rerouteJobs(): Promise<Timestamped> {
    const next = this.state.passing.next(this.state, this.#now);
    const done = await temporalActivities(`pass on ${next.jobs.length} jobs`).rerouteJobs(next);
    this.#inbox.push({ news: (state, now) => state.passing.done(next, done, state, now) });
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
    // Before they are started: an end that is told at once must find them.
    this.state.onRunnersStarting(runners, this.#now);
    const {
      at,
      rejected,
      message = 'refused',
    } = await temporalActivities(`start ${count} runners`).startRunners({
      set: name,
      templateHash,
      ephemeral,
      template,
      notifyBusy: needsBusyEvents(this.state, this.#now),
      notifyEndEarly: mayNotifyEndEarly(this.state),
      priority,
      runners,
    });
    if (rejected.length > 0)
      this.#inbox.push({ news: (state, now) => state.onStartRejected(rejected, message, now) });
    return { at };
  }

  async #drain(drain: SetDecision['drain']): Promise<Timestamped> {
    const runners = [...drain];
    const { at, ended } = await temporalActivities(`drain ${runners.length} runners`).drainRunners({
      runners,
    });
    this.#inbox.push({
      news: (state, now) =>
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

/** Independent of the order of the fields, which a memo need not keep. */
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
