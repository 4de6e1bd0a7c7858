import { defined } from '../../core/defined.ts';
import { ApplicationFailure, CancellationScope, condition, isCancellation, makeContinueAsNewFunc, setCurrentDetails, sleep, upsertMemo, workflowInfo } from '@temporalio/workflow';
import { queueCheckCalls, settle, temporalCalls, workerCalls } from '../calls.ts';
import { SET_COVER_MEMO, type RunnerSetInput, type RunnerSetStatus, type SetCover } from '../../core/contract/index.ts';
import { QUEUE_CHECK_UNSUPPORTED, decideSet, needsBusyNews, type SetDecision } from './plan.ts';
import { freshSuffix, runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import type { CarriedSet } from './carried.ts';
import type { SetState } from './state.ts';
import { setDetails, setStatus } from './status.ts';
import type { Timed } from '../../core/calls/index.ts';

/**
 * Well before the 4,096 events at which the server asks for it: a burst of signals may come on top, and a worker that takes over reads all
 * of it. Reckoned by what the loop has done, because the length that the worker tells is not the same in every replay either.
 */
const MAX_EVENTS = 1_000;
/** Of a turn of the loop: an activity and perhaps a timer, each with its workflow task. */
const EVENTS_PER_TURN = 9;
/** 100 bytes or more each; Temporal suggests to continue as new at 4 MB. */
const MAX_JOB_EVENTS = 10_000;
/** Runners started by one activity. */
const BATCH = 100;
/** A timer for a schedule that is months away is set again every day. */
const LONGEST_WAIT_MS = 24 * 3_600_000;

/** What a piece of news, or a word of an operator's, does to the set. */
type News = (state: SetState, now: number) => void;

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
  readonly name: string;
  #state: SetState | undefined;
  /** What has come in and is not in the state yet. */
  readonly #inbox: News[] = [];
  #now = 0;
  /** Something was changed by hand. */
  #changed = false;
  #checkingQueue = false;
  #underWay = 0;
  /**
   * An update that reaches a worker together with other news, and not the workflow in its cache, is put in another order by a later replay
   * (https://github.com/temporalio/sdk-python/issues/673). Updates are rare: the history in which that may be is left behind at once.
   */
  #updates = 0;
  /**
   * How many of them are known to be answered. An answer goes out with its workflow task, and is lost with it: the server takes no task that
   * closes a run while more news has come in (UnhandledCommand), and tells whoever sent an update in that task that it failed, for good.
   */
  #answered = 0;
  #events = 0;
  #jobEvents = 0;
  #timer: Alarm | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** Its declaration was checked, or carried over. */
  begin(state: SetState): void {
    this.#state = state;
    this.#now = state.facts.at;
  }

  /** Nothing can be changed by hand before; what comes by then waits. */
  async begun(): Promise<void> {
    if (this.#state === undefined) await condition(() => this.#state !== undefined);
  }

  get hasBegun(): boolean {
    return this.#state !== undefined;
  }

  /** @throws ApplicationFailure before it has begun */
  get state(): SetState {
    if (this.#state === undefined) throw ApplicationFailure.nonRetryable("The set's declaration was not checked yet", 'Defect');
    return this.#state;
  }

  /** News whose time matters: taken in when the loop has asked for it, once for all that comes meanwhile. */
  receive(news: News, jobEvents = 0): void {
    this.#inbox.push(news);
    this.#events++;
    this.#jobEvents += jobEvents;
  }

  /** A change by hand, at once. @param at - the time, if that matters (ms since the epoch) */
  change(apply: News, at = this.#now): RunnerSetStatus {
    this.#now = Math.max(this.#now, at);
    apply(this.state, this.#now);
    this.state.settle(this.#now);
    this.#changed = true;
    this.#updates++;
    return this.status();
  }

  /** A change by hand that takes its time: the set neither ends nor continues as new in the middle of it. */
  async changing(run: () => Promise<RunnerSetStatus>): Promise<RunnerSetStatus> {
    this.#underWay++;
    try {
      return await run();
    } finally {
      this.#underWay--;
    }
  }

  status(): RunnerSetStatus {
    return setStatus(this.state, this.#now);
  }

  /** Returns when the set has ended. */
  async run(input: RunnerSetInput): Promise<void> {
    for (;;) {
      this.#takeIn();
      const decision = decideSet(this.state, this.#now);
      const unanswered = this.#updates > this.#answered;
      if (this.#mayContinueAsNew() && !unanswered) await this.#continueAsNew(input);
      if (decision.ended && this.#underWay === 0 && !unanswered) return;
      const acting = this.#act(decision);
      const woken = acting === undefined && !unanswered ? await this.#wait(decision) : undefined;
      this.#tick(woken ?? (await this.#inAnotherTask(acting ?? workerCalls('what time is it?').clock())));
    }
  }

  #tick({ at }: Timed): void {
    this.#now = Math.max(this.#now, at);
    this.#events += EVENTS_PER_TURN;
  }

  /** What an activity answers comes with a later workflow task than the one that started it. */
  async #inAnotherTask(started: Promise<Timed>): Promise<Timed> {
    const updates = this.#updates;
    const timed = await started;
    this.#answered = updates;
    return timed;
  }

  #takeIn(): void {
    this.#changed = false;
    for (const news of this.#inbox.splice(0)) news(this.state, this.#now);
    this.state.settle(this.#now);
    this.#show();
  }

  #show(): void {
    setCurrentDetails(setDetails(this.state, this.#now));
    const { scope, labels } = this.state.facts.spec;
    if (scope === undefined) return;
    const cover: SetCover = { labels: [...labels], scope: scope.name, scopeKind: scope.kind };
    if (!sameCover(workflowInfo().memo?.[SET_COVER_MEMO], cover)) upsertMemo({ [SET_COVER_MEMO]: cover });
  }

  /** @returns what is being done, after which everything may be different; `undefined`: nothing is to be done now */
  #act(decision: SetDecision): Promise<Timed> | undefined {
    if (decision.evaluateSchedule) return this.#evaluateSchedule();
    if (decision.list) return this.#list();
    if (decision.checkQueue) this.#checkQueue();
    if (decision.start > 0) return this.#start(Math.min(decision.start, BATCH));
    if (decision.drain.length > 0) return this.#drain(decision.drain.slice(0, BATCH));
    return undefined;
  }

  /** @returns the time, if nothing but its coming has ended the wait */
  async #wait({ wakeAt, ended }: SetDecision): Promise<Timed | undefined> {
    const timer = this.#wakeAt(Math.min(wakeAt, this.#now + LONGEST_WAIT_MS));
    await condition(() => timer.fired || this.#changed || this.#inbox.length > 0 || this.#mayContinueAsNew() || (ended && this.#underWay === 0));
    return timer.fired && this.#inbox.length === 0 ? { at: timer.at } : undefined;
  }

  /** One timer, which stays as long as it is early enough: most news moves nothing, and must not cost a timer each. */
  #wakeAt(at: number): Alarm {
    if (this.#timer !== undefined && !this.#timer.fired && this.#timer.at <= at && this.#timer.at > this.#now) return this.#timer;
    this.#timer?.scope.cancel();
    const timer: Alarm = { at, scope: new CancellationScope(), fired: false };
    this.#timer = timer;
    const sleeping = timer.scope.run(async () => await sleep(Math.max(1, at - this.#now), { summary: 'until something changes by itself' }));
    void sleeping.then(
      () => (timer.fired = true),
      (error: unknown) => {
        if (!isCancellation(error)) throw error;
      },
    );
    return timer;
  }

  #mayContinueAsNew(): boolean {
    const long = this.#updates > 0 || this.#events > MAX_EVENTS || this.#jobEvents > MAX_JOB_EVENTS;
    // Only the run that was asked to cancel can end Cancelled: it goes on as long as it may.
    const isTime = workflowInfo().continueAsNewSuggested || (long && this.state.facts.cancelled !== true);
    return isTime && !this.#checkingQueue && this.#underWay === 0;
  }

  /**
   * Nothing may lie between taking in the inbox and this. The memo has to be given along: without it the webhook would not know which jobs
   * the set is for, until a worker has got to the new run.
   */
  async #continueAsNew(input: RunnerSetInput): Promise<never> {
    const memo = workflowInfo().memo ?? {};
    return await makeContinueAsNewFunc<(input: RunnerSetInput, carried: CarriedSet) => Promise<unknown>>({ memo })(input, this.state.carry());
  }

  async #evaluateSchedule(): Promise<Timed> {
    const { at, schedule } = await workerCalls('which schedule holds now?').evaluateSchedules({ schedules: this.state.facts.spec.schedules });
    this.#inbox.push((state, now) => state.reschedule(schedule, at, now));
    return { at };
  }

  async #list(): Promise<Timed> {
    const { at, runners } = await temporalCalls('which runners are there?').listRunners({ set: this.state.facts.spec.name });
    const missing = this.state.missing(runners, at);
    const found = missing.length === 0 ? { at, gone: [] } : await temporalCalls(`are ${missing.length} runners gone?`).findGone({ workflowIds: missing });
    this.#inbox.push((state, now) => state.listed(runners, found.gone, now));
    return { at: found.at };
  }

  /** Nobody waits for it: a CI server that is slow must not hold up what events ask for. */
  #checkQueue(): void {
    const { name, scope, credential, labels } = this.state.facts.spec;
    if (this.#checkingQueue || scope === undefined) return;
    this.#checkingQueue = true;
    const checkedAt = this.#now;
    this.state.queueCheckBegins(checkedAt);
    void settle(queueCheckCalls(credential, scope).lookForQueuedJobs({ set: name, taskQueue: workflowInfo().taskQueue, scope, credential, labels })).then((called) => {
      this.#checkingQueue = false;
      this.receive((state, now) => {
        if (called.kind === 'done' && called.value !== null) state.queueChecked(called.value, checkedAt, now);
        else state.queueNotChecked(called.kind === 'failed' ? called.message : QUEUE_CHECK_UNSUPPORTED);
      });
    });
  }

  async #start(count: number): Promise<Timed> {
    const { name, generation, ephemeral, template, slots } = this.state.facts.spec;
    const free = slots ? this.state.runners.freeSlots(count) : [];
    const runners = Array.from({ length: count }, (_none, index) => {
      const slot = free[index];
      return { workflowId: runnerWorkflowId(name, freshSuffix(Math.random)), ...defined({ slot }) };
    });
    // Before they are started: an end that is told at once must find them.
    this.state.starting(runners, this.#now);
    const { at, refused, why = 'refused' } = await temporalCalls(`start ${count} runners`).startRunners({ set: name, generation, ephemeral, template, tellsBusy: needsBusyNews(this.state, this.#now), runners });
    if (refused.length > 0) this.#inbox.push((state, now) => state.notStarted(refused, why, now));
    return { at };
  }

  async #drain(drain: SetDecision['drain']): Promise<Timed> {
    const runners = [...drain];
    const { at, gone } = await temporalCalls(`drain ${runners.length} runners`).drainRunners({ runners });
    this.#inbox.push((state, now) => state.draining(runners.map(({ workflowId }) => workflowId), gone, now));
    return { at };
  }
}

function sameCover(memo: unknown, cover: SetCover): boolean {
  const { labels, scope, scopeKind } = (memo ?? {}) as Partial<SetCover>;
  return JSON.stringify([labels, scope, scopeKind]) === JSON.stringify([cover.labels, cover.scope, cover.scopeKind]);
}
