import { allHandlersFinished, condition, continueAsNew, setCurrentDetails, upsertMemo, workflowInfo } from '@temporalio/workflow';
import { settle } from './calls.ts';
import { SET_COVER_MEMO, type RunnerSetInput, type SetCover } from './setContract.ts';
import { LOOK_UNSUPPORTED, decideSet, type SetDecision } from './setDecision.ts';
import { lookCalls, setAdmission, temporalCalls } from './setCalls.ts';
import { freshSuffix, runnerWorkflowId } from './setRunnerNames.ts';
import type { CarriedSet, SetState } from './setState.ts';
import { setDetails } from './setStatus.ts';

/** Well before the 4,096 events at which the server asks for it: a burst of signals may come on top, and a worker that takes over reads all of it. */
const MAX_EVENTS = 1_000;
const MAX_HISTORY_BYTES = 2 * 1_024 * 1_024;
/** Runners started by one activity. */
const BATCH = 100;
/** A timer for a schedule that is months away is set again every day. */
const LONGEST_WAIT_MS = 24 * 3_600_000;

/** A set's state, and the loop that does what follows from it. */
export class RunningSet {
  readonly state: SetState;
  #changes = 0;
  #looking = false;
  #cover = '';

  constructor(state: SetState) {
    this.state = state;
  }

  /** Every change of the state goes through here: the loop looks at it, once for all that comes in one workflow task. */
  change<T>(apply: (now: number) => T): T {
    const result = apply(Date.now());
    this.#changes++;
    return result;
  }

  #show(): void {
    setCurrentDetails(setDetails(this.state, Date.now()));
    const { scope, labels } = this.state.facts.spec;
    if (scope === undefined) return;
    const cover: SetCover = { labels: [...labels], scope: scope.name, scopeKind: scope.kind };
    if (JSON.stringify(cover) === this.#cover) return;
    this.#cover = JSON.stringify(cover);
    if (JSON.stringify(workflowInfo().memo?.[SET_COVER_MEMO]) !== this.#cover) upsertMemo({ [SET_COVER_MEMO]: cover });
  }

  /** Returns when the set has ended. */
  async run(input: RunnerSetInput): Promise<void> {
    for (;;) {
      this.state.settle(Date.now());
      this.#show();
      const decision = decideSet(this.state, Date.now());
      if (this.#mayContinueAsNew()) await continueAsNew<(input: RunnerSetInput, carried: CarriedSet) => Promise<unknown>>(input, this.state.carry());
      if (decision.ended) break;
      if (!(await this.#act(decision))) await this.#wait(decision);
    }
    await condition(allHandlersFinished);
  }

  /** @returns whether something was done, after which everything may be different */
  async #act(decision: SetDecision): Promise<boolean> {
    if (decision.evaluateSchedule) return await this.#evaluateSchedule();
    if (decision.list) return await this.#list();
    if (decision.look) this.#look();
    if (decision.start > 0) return await this.#start(Math.min(decision.start, BATCH));
    if (decision.drain.length > 0) return await this.#drain(decision.drain.slice(0, BATCH));
    return false;
  }

  async #wait({ wakeAt }: SetDecision): Promise<void> {
    const until = Math.min(wakeAt, Date.now() + LONGEST_WAIT_MS);
    let seen = this.#changes;
    // News that changes nothing to be done must not cost a timer each: most job events are such.
    const concerns = (): boolean => {
      if (this.#mayContinueAsNew()) return true;
      if (this.#changes === seen) return false;
      seen = this.#changes;
      this.#show();
      const next = decideSet(this.state, Date.now());
      return next.wakeAt < until || next.ended || next.evaluateSchedule || next.list || next.start > 0 || next.drain.length > 0 || (next.look && !this.#looking);
    };
    await condition(concerns, Math.max(1, until - Date.now()), { summary: 'until something changes by itself' });
  }

  #mayContinueAsNew(): boolean {
    const { historyLength, historySize, continueAsNewSuggested } = workflowInfo();
    return (historyLength > MAX_EVENTS || historySize > MAX_HISTORY_BYTES || continueAsNewSuggested) && !this.#looking && allHandlersFinished();
  }

  async #evaluateSchedule(): Promise<true> {
    const schedule = await setAdmission().evaluateSchedules({ schedules: this.state.facts.spec.schedules });
    this.change((now) => this.state.reschedule(schedule, now));
    return true;
  }

  async #list(): Promise<true> {
    const askedAt = Date.now();
    const listed = await temporalCalls('which runners are there?').listRunners({ set: this.state.facts.spec.name });
    this.change((now) => this.state.listed(listed, askedAt, now));
    return true;
  }

  /** Nobody waits for it: a CI server that is slow must not hold up what events ask for. */
  #look(): void {
    const { name, scope, credential, labels } = this.state.facts.spec;
    if (this.#looking || scope === undefined) return;
    this.#looking = true;
    const lookedAt = Date.now();
    this.state.looking(lookedAt);
    void settle(lookCalls(credential, scope).lookForQueuedJobs({ set: name, taskQueue: workflowInfo().taskQueue, scope, credential, labels })).then((called) => {
      this.#looking = false;
      this.change((now) => {
        if (called.kind === 'done' && called.value !== null) this.state.looked(called.value, lookedAt, now);
        else this.state.notLooked(called.kind === 'failed' ? called.message : LOOK_UNSUPPORTED);
      });
    });
  }

  async #start(count: number): Promise<true> {
    const { name, generation, ephemeral, template, slots } = this.state.facts.spec;
    const free = slots ? this.state.runners.freeSlots(count) : [];
    const runners = Array.from({ length: count }, (_none, index) => {
      const slot = free[index];
      return { workflowId: runnerWorkflowId(name, freshSuffix(Math.random)), ...(slot === undefined ? {} : { slot }) };
    });
    // Before they are started: an end that is told at once must find them.
    this.change((now) => this.state.starting(runners, now));
    const { refused, why = 'refused' } = await temporalCalls(`start ${count} runners`).startRunners({ set: name, generation, ephemeral, template, runners });
    if (refused.length > 0) this.change((now) => this.state.notStarted(refused, why, now));
    return true;
  }

  async #drain(drain: SetDecision['drain']): Promise<true> {
    const runners = [...drain];
    const { gone } = await temporalCalls(`drain ${runners.length} runners`).drainRunners({ runners });
    this.change((now) => this.state.draining(runners.map(({ workflowId }) => workflowId), gone, now));
    return true;
  }
}
