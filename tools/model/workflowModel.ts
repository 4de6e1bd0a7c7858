/**
 * Evaluates the workflow's own functions in states of the model. Each function is evaluated once
 * for the same arguments. Knowledge, progress, decisions and verdicts are interned: a state refers
 * to them by number.
 */
import type { PodView } from '../../core/domain/pod.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { RunnerSpec } from '../../core/input/runner.ts';
import type { RunnerState } from '../../workflows/runner/state.ts';
import type { StartupDecision } from '../../workflows/runner/startupDecision.ts';
import {
  currentFacts,
  factsChanged,
  mustInterruptStop,
  waitMs,
  type Unregistered,
} from '../../workflows/runner/unregister.ts';
import type {
  ObservedFacts,
  UnregistrationEvent,
  UnregistrationProgress,
} from '../../workflows/runner/unregisterFacts.ts';
import type { UnregistrationAction } from '../../workflows/runner/unregisterTable.ts';
import type { EndFacts } from '../../workflows/runner/endFacts.ts';
import type { VerdictDecision } from '../../workflows/runner/verdict.ts';
import { TABLES, type Tables } from './decisionTables.ts';
import { InternTable, memoize } from './interning.ts';
import {
  applyUpdate,
  initialKnowledge,
  knowledgeOf,
  replacementKnowledge,
  restoreState,
  type Knowledge,
} from './knowledge.ts';
import { clockOf, podView, STARTED_MS, type WorkerCache } from './podViews.ts';
import { runnerSpec } from './runnerSpecs.ts';
import type { Setup, State } from './state.ts';
import { updateCode, type Update } from './updates.ts';

/** A decision of the unregistration, with the facts that it is based on. */
export interface Decision {
  readonly action: UnregistrationAction;
  readonly facts: ObservedFacts;
  /** Maximum duration of a wait (ms). */
  readonly waitMs?: number;
}

/** A verdict, with the facts that it is based on. */
interface DecidedVerdict {
  readonly facts?: EndFacts;
  readonly decision: VerdictDecision;
}

/** A call of a decision table, which can be repeated with a mutant. */
export interface Evaluation {
  readonly table: keyof Tables;
  readonly evaluate: (tables: Tables) => unknown;
  readonly result: unknown;
}

/** The workflow as the model calls it. */
export class WorkflowModel {
  readonly #tables: Tables;
  /** All different calls of decision tables. */
  readonly evaluations: Evaluation[] = [];
  readonly #specs = new Map<Setup, unknown>();
  readonly #knowledge = new InternTable<Knowledge>();
  readonly #progress = new InternTable<UnregistrationProgress>();
  readonly #decisions = new InternTable<Decision>();
  readonly #verdicts = new InternTable<DecidedVerdict>();
  readonly #views = new InternTable<PodView>();
  readonly #updated = new Map<number, number>();
  readonly #decided = new Map<number, number>();
  readonly #changed = new Map<number, boolean>();
  readonly #results = new Map<string, unknown>();

  constructor(tables: Tables = TABLES) {
    this.#tables = tables;
    this.#verdicts.intern({
      decision: { kind: 'end', outcome: 'errored', message: 'none yet' },
    });
  }

  /** Returns the specification of the runner. */
  spec(setup: Setup): RunnerSpec {
    return memoize(this.#specs, setup, () => runnerSpec(setup));
  }

  /**
   * Returns the number of what a workflow knows that has just been admitted.
   * @param neverStartedInARow - number of its previous runners whose container never started
   */
  initialKnowledge(setup: Setup, neverStartedInARow: number): number {
    return this.#knowledge.intern(initialKnowledge(setup, neverStartedInARow));
  }

  /** Returns what the workflow knows in a state. */
  knowledge({ knowledge }: State): Knowledge {
    return this.#knowledge.values[knowledge] as Knowledge;
  }

  /** Returns the current decision of the unregistration. */
  decision({ decision }: State): Decision {
    return this.#decisions.values[decision] as Decision;
  }

  /** Returns the progress of the unregistration. */
  progress({ progress }: State): UnregistrationProgress {
    return this.#progress.values[progress] as UnregistrationProgress;
  }

  /** Returns the verdict. */
  verdict({ verdict }: State): VerdictDecision {
    return (this.#verdicts.values[verdict] as DecidedVerdict).decision;
  }

  /** Returns the number of the view of the pod that a worker with this cache returns now. */
  view(s: State, cache: WorkerCache): number {
    const key = `view ${s.setup} ${s.pod} ${s.problem} ${s.deletedBy} ${s.started} ${s.exit} ${s.exitRecorded} ${s.interrupted} ${s.job} ${s.published} ${s.pastRegistrationDeadline} ${s.watcherView} ${cache}`;
    return memoize(this.#results, key, () => this.#views.intern(podView(s, cache)));
  }

  /** Returns the view with this number. */
  viewAt(view: number): PodView {
    return this.#views.values[view] as PodView;
  }

  /** Returns the number of what the workflow knows after an update. */
  update(s: State, update: Update): number {
    return memoize(this.#updated, callKey(s, s.knowledge, updateCode(update)), () => {
      const workflow = this.#restore(s);
      this.#atClockOf(s, () => {
        if (update.kind === 'cancel')
          this.#requestCancel(workflow, { mode: update.mode, by: update.by, reason: '' });
        else applyUpdate(workflow, update, (view) => this.viewAt(view));
      });
      return this.#knowledge.intern(knowledgeOf(workflow, s));
    });
  }

  #requestCancel(workflow: RunnerState, requested: Cancellation): void {
    if (workflow.hasEnded) workflow.fixVerdictCancel();
    const { cancel } = workflow;
    workflow.cancel = this.#evaluate('cancellation', (tables) =>
      tables.cancellation.upgradeCancellation(cancel, requested),
    );
  }

  /** Whether the workflow knows that the runner had a job. */
  hadJob(s: State): boolean {
    return memoize(this.#results, `hadJob ${s.knowledge}`, () => this.#restore(s).hadJob);
  }

  /** Returns the decision about the start of the pod, by its last view. */
  startup(s: State): StartupDecision {
    const key = `startup ${s.knowledge} ${clockOf(s)} ${s.podAge} ${s.setup}`;
    return memoize(this.#results, key, () => {
      const { pod } = this.knowledge(s).runner;
      const { timeouts } = this.spec(s.setup);
      const sinceCreatedMs = {
        new: 0,
        '5 m': timeouts.podUnscheduledMs,
        '10 m': timeouts.podPendingMs,
      }[s.podAge];
      return this.#evaluate('onlineDecision', (tables) =>
        tables.onlineDecision.decideStartup(
          pod as PodView,
          sinceCreatedMs,
          s.pastRegistrationDeadline ? timeouts.registrationMs : 0,
          timeouts,
        ),
      );
    });
  }

  /** Returns the number of the progress at the start of an unregistration. */
  initialProgress(s: State): number {
    return this.#progress.intern(
      this.#evaluate('unregisterFacts', (tables) =>
        tables.unregisterFacts.initialProgress(
          this.spec(s.setup).scope === undefined ? STARTED_MS : undefined,
        ),
      ),
    );
  }

  /** Returns the number of the next decision of the unregistration. */
  decide(s: State): number {
    return memoize(this.#decided, callKey(s, s.knowledge, s.progress), () => {
      const workflow = this.#restore(s);
      return this.#atClockOf(s, () => {
        const observed = currentFacts(workflow);
        const facts = { ...observed, ...this.progress(s) };
        const action = this.#evaluate('unregisterTable', (tables) =>
          tables.unregisterTable.decideUnregistration(facts),
        );
        return this.#decisions.intern({
          action,
          facts: observed,
          ...(action.kind === 'wait'
            ? { waitMs: Math.max(1, waitMs(workflow, action.until, facts)) }
            : {}),
        });
      });
    });
  }

  /**
   * Whether facts have changed since the current decision, so that the workflow must decide again.
   * A requested deletion of the pod is interrupted by fewer changes.
   */
  factsChanged(s: State): boolean {
    return memoize(this.#changed, callKey(s, s.knowledge, s.decision), () => {
      const workflow = this.#restore(s);
      const { action, facts: observed } = this.decision(s);
      const facts = { ...observed, ...this.progress(s) };
      return this.#atClockOf(s, () =>
        action.kind === 'stopPod'
          ? mustInterruptStop(workflow, facts)
          : factsChanged(workflow, facts),
      );
    });
  }

  /** Returns the number of the progress after an event. */
  applyEvent(s: State, event: UnregistrationEvent): number {
    const key = `event ${s.progress} ${s.decision} ${Object.values(event).join()}`;
    return memoize(this.#results, key, () =>
      this.#progress.intern(
        this.#evaluate('unregisterFacts', (tables) =>
          tables.unregisterFacts.applyEvent(
            { ...this.decision(s).facts, ...this.progress(s) },
            event,
          ),
        ),
      ),
    );
  }

  /** Returns the number of the part of the progress that the verdict depends on. */
  finalProgress(s: State): number {
    return memoize(this.#results, `finalProgress ${s.progress}`, () => {
      const { removal, removedWhileRunning, stopped } = this.progress(s);
      return this.#progress.intern({
        podRefreshed: false,
        removedWhileRunning,
        removalPending: false,
        ...(removal === undefined ? {} : { removal }),
        ...(stopped === undefined ? {} : { stopped }),
      });
    });
  }

  /** Returns the number of the verdict by the facts at the end of the unregistration. */
  verdictAfterUnregistration(s: State): number {
    const key = `verdict ${callKey(s, s.knowledge, s.progress)} ${s.failure} ${s.setup}`;
    return memoize(this.#results, key, () => {
      const workflow = this.#restore(s);
      return this.#decideVerdict((tables) =>
        this.#atClockOf(s, () => tables.verdictFacts(workflow, this.#unregistered(s))),
      );
    });
  }

  /** Returns the number of the final verdict, which can be a replacement. */
  finalVerdict(s: State): number {
    const isReplacing = s.stage === 'replacing';
    const key = `finalVerdict ${isReplacing} ${callKey(s, s.knowledge, s.progress)} ${s.verdict} ${s.failure} ${s.setup}`;
    return memoize(this.#results, key, () => {
      const { facts } = this.#verdicts.values[s.verdict] as DecidedVerdict;
      const workflow = this.#restore(s);
      workflow.countLostAttempt({ shortLived: true });
      return this.#decideVerdict(
        (tables) =>
          this.#atClockOf(s, () =>
            tables.finalFacts(workflow, this.#unregistered(s), facts as EndFacts),
          ),
        isReplacing ? workflow.cancel : undefined,
      );
    });
  }

  #unregistered(s: State): Unregistered {
    const { removal, removedWhileRunning, stopped } = this.progress(s);
    return {
      removedWhileRunning,
      stoppedByHoldfast: stopped !== undefined,
      ...(removal === undefined ? {} : { removal }),
    };
  }

  #decideVerdict(factsBy: (tables: Tables['verdicts']) => EndFacts, cancel?: Cancellation): number {
    const facts = factsBy(this.#tables.verdicts);
    const decision = this.#evaluate('verdicts', ({ verdicts: tables }) =>
      cancel === undefined
        ? tables.decideVerdict(factsBy(tables))
        : tables.whenCancelled(factsBy(tables), cancel),
    );
    return this.#verdicts.intern({ facts, decision });
  }

  /** Returns the number of what the workflow knows at the start of a replacement. */
  replacement(s: State): number {
    return memoize(this.#results, `replacement ${s.knowledge}`, () =>
      this.#knowledge.intern(replacementKnowledge(this.#restore(s), s.setup)),
    );
  }

  #evaluate<T>(table: keyof Tables, evaluate: (tables: Tables) => T): T {
    const result = evaluate(this.#tables);
    this.evaluations.push({ table, evaluate, result });
    return result;
  }

  #restore(s: State): RunnerState {
    return restoreState(this.knowledge(s), this.spec(s.setup), s.failure);
  }

  /** Runs a function while the workflow's clock shows the time of the state. */
  #atClockOf<T>(s: State, run: () => T): T {
    const { now } = Date;
    Date.now = () => clockOf(s);
    try {
      return run();
    } finally {
      Date.now = now;
    }
  }
}

/** Upper limit of the numbers of progress, decisions and updates. */
const MAX_NUMBER = 8_192;

/** Returns a key of a call that depends on knowledge, one other number, and the time. */
function callKey(
  { pastRegistrationDeadline, deletedBy }: State,
  knowledge: number,
  other: number,
): number {
  const time = (pastRegistrationDeadline ? 2 : 0) + (deletedBy === 'none' ? 0 : 1);
  return (knowledge * MAX_NUMBER + other) * 4 + time;
}
