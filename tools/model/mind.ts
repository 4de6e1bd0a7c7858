/**
 * What the life of the model thinks: the very functions that the workflow runs, each asked once for each thing that it can be asked. Beliefs,
 * facts and plans are kept here, and have numbers.
 */
import type { PodView } from '../../core/domain/pod.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import * as cancellation from '../../core/domain/cancellation.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { RunnerSpec } from '../../core/input/runner.ts';
import type { AttemptFailure, CurrentRunner } from '../../workflows/runner/carriedState.ts';
import { NO_JOBS } from '../../workflows/runner/jobEvents.ts';
import { RunnerState } from '../../workflows/runner/state.ts';
import * as onlineDecision from '../../workflows/runner/startupDecision.ts';
import type { StartupDecision } from '../../workflows/runner/startupDecision.ts';
import { recordPod } from '../../workflows/runner/podWaits.ts';
import {
  factsChanged,
  mustInterruptStop,
  currentFacts,
  waitMs,
  type Unregistered,
} from '../../workflows/runner/unregister.ts';
import * as unregisterFacts from '../../workflows/runner/unregisterFacts.ts';
import type {
  UnregistrationProgress,
  ObservedFacts,
  UnregistrationEvent,
} from '../../workflows/runner/unregisterFacts.ts';
import * as unregisterTable from '../../workflows/runner/unregisterTable.ts';
import type { UnregistrationAction } from '../../workflows/runner/unregisterTable.ts';
import * as verdicts from '../../workflows/runner/verdict.ts';
import type { EndFacts, VerdictDecision } from '../../workflows/runner/verdict.ts';
import { specOf } from './inputs.ts';
import { Numbers, once } from './numbers.ts';
import { numberOf, type Op } from './ops.ts';
import { clockOf, STARTED_MS, viewOf, type Knowledge } from './pods.ts';
import type { Setup, State } from './state.ts';
import { JOB_IDS, timeless } from './timeless.ts';

/** The modules with tables and reducers; a mutation run gives others. */
export const TABLES = { unregisterTable, unregisterFacts, onlineDecision, verdicts, cancellation };
export type Tables = typeof TABLES;

/** What a life keeps of what it heard. */
interface Belief {
  readonly setup: Setup;
  readonly runner: CurrentRunner;
  readonly cancel?: Cancellation;
  readonly fixedCancel?: { readonly cancel?: Cancellation };
  readonly neverStartedInARow: number;
}

/** A step of the unregistration, and what the life saw when it took it. */
export interface Plan {
  readonly action: UnregistrationAction;
  readonly seen: ObservedFacts;
  /** Of a wait. */
  readonly waitMs?: number;
}

/** A verdict, and what it goes by. */
interface Ending {
  readonly facts?: EndFacts;
  readonly decision: VerdictDecision;
}

/** By the CI server's clock: the jobs' steps, ten minutes apart. */
const jobTimeMs = (job: 'A' | 'B', action: string): number =>
  STARTED_MS + ((job === 'A' ? 0 : 2) + (action === 'completed' ? 1 : 0)) * 600_000;
const RUNNER_ID = '7';
const PLACE = { compute: 'kubernetes', cluster: 'c', namespace: 'n', installation: 'i' } as const;

/** What the tables were asked, and how they answered; to be asked of others. */
export interface Question {
  readonly table: keyof Tables;
  readonly ask: (tables: Tables) => unknown;
  readonly answer: unknown;
}

export class Mind {
  readonly #tables: Tables;
  /** Every one once. */
  readonly questions: Question[] = [];
  readonly #specs = new Map<Setup, unknown>();
  readonly #beliefs = new Numbers<Belief>();
  readonly #heard = new Numbers<UnregistrationProgress>();
  readonly #plans = new Numbers<Plan>();
  readonly #verdicts = new Numbers<Ending>();
  readonly #views = new Numbers<PodView>();
  readonly #after = new Map<number, number>();
  readonly #decided = new Map<number, number>();
  readonly #changed = new Map<number, boolean>();
  readonly #answers = new Map<string, unknown>();

  constructor(tables: Tables = TABLES) {
    this.#tables = tables;
    this.#verdicts.of({
      decision: { kind: 'end', outcome: 'errored', message: 'none yet' },
    });
  }

  spec(setup: Setup): RunnerSpec {
    return once(this.#specs, setup, () => specOf(setup));
  }

  /** Where a life begins. @param neverStartedInARow - runners of this life that were lost before their container started */
  firstBelief(setup: Setup, neverStartedInARow: number): number {
    return this.#beliefs.of({
      setup,
      runner: {
        identity: { workflowId: 'w', firstRunId: 'r', attempt: 1 },
        online: false,
        hadJob: false,
        jobs: NO_JOBS,
      },
      neverStartedInARow,
    });
  }

  belief({ belief }: State): Belief {
    return this.#beliefs.all[belief] as Belief;
  }

  plan({ plan }: State): Plan {
    return this.#plans.all[plan] as Plan;
  }

  heard({ heard }: State): UnregistrationProgress {
    return this.#heard.all[heard] as UnregistrationProgress;
  }

  verdict({ verdict }: State): VerdictDecision {
    return (this.#verdicts.all[verdict] as Ending).decision;
  }

  /** The pod as a worker tells of it now. */
  view(s: State, knowledge: Knowledge): number {
    const question = `view ${s.setup} ${s.pod} ${s.problem} ${s.told} ${s.started} ${s.exit} ${s.recorded} ${s.interrupted} ${s.job} ${s.shown} ${s.old} ${s.watched} ${knowledge}`;
    return once(this.#answers, question, () => this.#views.of(viewOf(s, knowledge)));
  }

  viewAt(view: number): PodView {
    return this.#views.all[view] as PodView;
  }

  /** What the life believes after the news. */
  hear(state: State, op: Op): number {
    return once(this.#after, place(state, state.belief, numberOf(op)), () => {
      const life = this.#life(state);
      this.#at(state, () => this.#take(life, op));
      return this.#beliefs.of({
        setup: state.setup,
        runner: timeless(life.runner, state.told !== 'no'),
        neverStartedInARow: life.runner.pod?.startedAt === undefined ? life.neverStartedInARow : 0,
        ...omitUndefined({ cancel: life.cancel, fixedCancel: life.fixedCancel }),
      });
    });
  }

  #take(state: RunnerState, op: Op): void {
    const { runner } = state;
    switch (op.kind) {
      case 'provisioned':
        runner.pod = this.#views.all[op.view] as PodView;
        recordPod(state, runner.pod);
        if (state.spec.registrationMode === 'jit' && state.spec.scope !== undefined)
          runner.id = RUNNER_ID;
        return;
      case 'see':
        return void recordPod(state, this.#views.all[op.view] as PodView);
      case 'ended': // as awaitEnd
        if (recordPod(state, this.#views.all[op.view] as PodView))
          runner.ended = this.#views.all[op.view] as PodView;
        return;
      case 'foundEnded': // as becomeOnline
        runner.ended = runner.pod as PodView;
        return;
      case 'job':
        return state.onJobEvent({
          action: op.action,
          jobId: JOB_IDS[op.job],
          at: jobTimeMs(op.job, op.action),
          runnerName: state.runnerName,
          ...(op.action === 'completed' ? { conclusion: op.conclusion } : {}),
        });
      case 'podState':
        return state.onPodState({ uid: runner.pod?.uid ?? '', state: op.state });
      case 'cancel':
        return this.#requestCancel(state, { mode: op.mode, by: op.by, reason: '' });
      case 'unregistered':
        return state.fixVerdictCancel();
      case 'in doubt':
        return void (runner.podInDoubt = true);
      case 'seen live':
        return state.confirmIdle(Number.MAX_SAFE_INTEGER);
      case 'known':
        return void (runner.id = RUNNER_ID);
      case 'sighted': // as register
        return void Object.assign(runner, { online: true, id: RUNNER_ID });
      case 'isUp': // as isOnline
        runner.online = true;
        if (state.spec.scope === undefined) state.commandStarted();
        return;
      case 'called busy': // as remove
        return state.calledBusy();
    }
  }

  #requestCancel(life: RunnerState, wanted: Cancellation): void {
    if (life.hasEnded) life.fixVerdictCancel();
    const { cancel } = life;
    life.cancel = this.#ask('cancellation', (tables) =>
      tables.cancellation.upgradeCancellation(cancel, wanted),
    );
  }

  hadJob(state: State): boolean {
    return once(this.#answers, `saw ${state.belief}`, () => this.#life(state).hadJob);
  }

  /** How the pod's way up is judged, by what was last seen of it. */
  comingUp(state: State): StartupDecision {
    return once(
      this.#answers,
      `up ${state.belief} ${clockOf(state)} ${state.age} ${state.setup}`,
      () => {
        const { pod } = this.belief(state).runner;
        const { timeouts } = this.spec(state.setup);
        const sinceCreatedMs = {
          new: 0,
          '5 m': timeouts.podUnscheduledMs,
          '10 m': timeouts.podPendingMs,
        }[state.age];
        return this.#ask('onlineDecision', (tables) =>
          tables.onlineDecision.decideStartup(
            pod as PodView,
            sinceCreatedMs,
            state.old ? timeouts.registrationMs : 0,
            timeouts,
          ),
        );
      },
    );
  }

  /** Nothing heard yet: where an unregistration begins. */
  nothingHeard(state: State): number {
    return this.#heard.of(
      this.#ask('unregisterFacts', (tables) =>
        tables.unregisterFacts.initialProgress(
          this.spec(state.setup).scope === undefined ? STARTED_MS : undefined,
        ),
      ),
    );
  }

  /** The next step of the unregistration, as a plan. */
  decide(state: State): number {
    return once(this.#decided, place(state, state.belief, state.heard), () => {
      const life = this.#life(state);
      return this.#at(state, () => {
        const seen = currentFacts(life);
        const facts = { ...seen, ...this.heard(state) };
        const action = this.#ask('unregisterTable', (tables) =>
          tables.unregisterTable.decideUnregistration(facts),
        );
        return this.#plans.of({
          action,
          seen,
          ...(action.kind === 'wait'
            ? { waitMs: Math.max(1, waitMs(life, action.until, facts)) }
            : {}),
        });
      });
    });
  }

  /** Must the table hear of what has changed since the step was decided? A deletion that is asked for is called off for less. */
  hasChanged(state: State): boolean {
    return once(this.#changed, place(state, state.belief, state.plan), () => {
      const life = this.#life(state);
      const { action, seen } = this.plan(state);
      const facts = { ...seen, ...this.heard(state) };
      return this.#at(state, () =>
        action.kind === 'stopPod' ? mustInterruptStop(life, facts) : factsChanged(life, facts),
      );
    });
  }

  /** What is known after news of the step that was taken. */
  news(state: State, news: UnregistrationEvent): number {
    return once(
      this.#answers,
      `news ${state.heard} ${state.plan} ${Object.values(news).join()}`,
      () =>
        this.#heard.of(
          this.#ask('unregisterFacts', (tables) =>
            tables.unregisterFacts.applyEvent(
              { ...this.plan(state).seen, ...this.heard(state) },
              news,
            ),
          ),
        ),
    );
  }

  /** Of what was heard, what the verdict goes by. */
  lastHeard(state: State): number {
    return once(this.#answers, `last ${state.heard}`, () => {
      const { removal, removedWhileRunning, stopped } = this.heard(state);
      return this.#heard.of({
        podRefreshed: false,
        removedWhileRunning,
        removalPending: false,
        ...(removal === undefined ? {} : { removal }),
        ...(stopped === undefined ? {} : { stopped }),
      });
    });
  }

  /** The verdict as the facts are when the runner is unregistered. */
  unregistered(state: State): number {
    return once(
      this.#answers,
      `unregistered ${place(state, state.belief, state.heard)} ${state.failure} ${state.setup}`,
      () => {
        const life = this.#life(state);
        return this.#verdictBy((tables) =>
          this.#at(state, () => tables.verdictFacts(life, this.#unregistered(state))),
        );
      },
    );
  }

  /** The verdict, or another runner. */
  ending(state: State): number {
    return once(
      this.#answers,
      `end ${state.at === 'replacing'} ${place(state, state.belief, state.heard)} ${state.verdict} ${state.failure} ${state.setup}`,
      () => {
        const { facts } = this.#verdicts.all[state.verdict] as Ending;
        const life = this.#life(state);
        life.countLostAttempt(true);
        return this.#verdictBy(
          (tables) =>
            this.#at(state, () =>
              tables.finalFacts(life, this.#unregistered(state), facts as EndFacts),
            ),
          state.at === 'replacing' ? life.cancel : undefined,
        );
      },
    );
  }

  #unregistered(state: State): Unregistered {
    const { removal, removedWhileRunning, stopped } = this.heard(state);
    return {
      removedWhileRunning,
      stoppedByHoldfast: stopped !== undefined,
      ...(removal === undefined ? {} : { removal }),
    };
  }

  #verdictBy(factsBy: (tables: Tables['verdicts']) => EndFacts, cancel?: Cancellation): number {
    const facts = factsBy(this.#tables.verdicts);
    const decision = this.#ask('verdicts', ({ verdicts: tables }) =>
      cancel === undefined
        ? tables.decideVerdict(factsBy(tables))
        : tables.whenCancelled(factsBy(tables), cancel),
    );
    return this.#verdicts.of({ facts, decision });
  }

  /** What the life believes when the next runner takes the place of the one that was lost. */
  replaced(state: State): number {
    return once(this.#answers, `replaced ${state.belief}`, () => {
      const life = this.#life(state);
      life.countLostAttempt(true);
      life.replaceRunner();
      return this.#beliefs.of({
        setup: state.setup,
        runner: life.runner,
        neverStartedInARow: life.neverStartedInARow,
      });
    });
  }

  #ask<T>(table: keyof Tables, ask: (tables: Tables) => T): T {
    const answer = ask(this.#tables);
    this.questions.push({ table, ask, answer });
    return answer;
  }

  #life(state: State): RunnerState {
    const { runner: known, cancel, fixedCancel, neverStartedInARow } = this.belief(state);
    const { identity, ...runner } = copyOf(known);
    const failure = failureOf(state.failure);
    const carried = {
      ...(failure === undefined ? {} : { failure }),
      notifiedOnline: false,
      createdAtMs: STARTED_MS,
      runnerName: '',
      location: PLACE,
      attempt: identity.attempt,
      runner,
      phases: [],
      replacements: [],
      unregisterAttempts: 0,
      usedJobMs: 0,
      neverStartedInARow,
      shortLivedInARow: 0,
    };
    const life = new RunnerState('w', 'r', STARTED_MS);
    life.restore({ ...carried, ...omitUndefined({ cancel }) });
    life.admit({ ...this.spec(state.setup), location: PLACE });
    life.fixedCancel = fixedCancel;
    return life;
  }

  /** The workflow's clock says what the model's does. */
  #at<T>(state: State, run: () => T): T {
    const { now } = Date;
    Date.now = () => clockOf(state);
    try {
      return run();
    } finally {
      Date.now = now;
    }
  }
}

/** What a life may change of its own: the fields, and lists in them. Views of pods it only replaces. */
function copyOf<T extends object>(thing: T): T {
  return Object.fromEntries(
    Object.entries(thing).map(([name, value]: [string, unknown]) => [
      name,
      Array.isArray(value) ? structuredClone(value) : value,
    ]),
  ) as T;
}

/** More than there ever are of heard facts, of plans and of ops. */
const ROOM = 8_192;

/** A question of a belief and one thing more, at one of the model's times. */
function place({ old, told }: State, belief: number, other: number): number {
  return (belief * ROOM + other) * 4 + (old ? 2 : 0) + (told === 'no' ? 0 : 1);
}

function failureOf(failure: State['failure']): AttemptFailure | undefined {
  if (failure === 'none') return undefined;
  return failure === 'provisioning' ? { message: 'refused' } : { message: 'late', cause: failure };
}
