/**
 * The model checker. It visits states in the order of the number of faults on the way to them, and
 * breadth first within that order. So the first trace to a violation has as few faults as possible,
 * and is as short as possible.
 */
import { ENVIRONMENT } from './environment.ts';
import { checkState, checkStep } from './invariants.ts';
import { normalize } from './normalize.ts';
import { decode, encode, FIELDS, initialState, type Setup, type State } from './state.ts';
import { StateGraph } from './stateGraph.ts';
import { violationKey, type Step, type Violation } from './trace.ts';
import { isFair, isFault, type Transition } from './transition.ts';
import type { Tables } from './decisionTables.ts';
import { WorkflowModel } from './workflowModel.ts';
import { recordDeadlineJob, runWorkflow } from './workflowTask.ts';
import { WORKFLOW } from './workflowTransitions.ts';

const TRANSITIONS: readonly Transition[] = [...WORKFLOW, ...ENVIRONMENT];
/** Indexes of the transitions that are possible in each stage. */
const TRANSITIONS_IN = Object.fromEntries(
  FIELDS.stage.map((stage) => [
    stage,
    [...TRANSITIONS.keys()].filter((index) => {
      const only = TRANSITIONS[index]?.stage;
      return only === undefined || only === stage;
    }),
  ]),
) as Record<State['stage'], number[]>;

/** All kinds of runners. */
export const SETUPS: readonly Setup[] = FIELDS.setup;

/**
 * Default number of faults in a trace, for each kind of runner. Every kind is explored completely,
 * and all of them together take a minute.
 */
export const MAX_FAULTS: Readonly<Record<Setup, number>> = {
  ephemeral: 1,
  'ephemeral, no supervisor': 2,
  'ephemeral, replace': 1,
  static: 1,
  'static, no supervisor': 1,
  command: 2,
  'checkpointing command': 2,
};

/** Names of all faults and timeouts. */
export const FAULTS: readonly string[] = [
  ...new Set(TRANSITIONS.filter(isFault).map(({ name }) => name)),
];

/**
 * Numbers of previous runners of the workflow whose container never started. The largest kind has
 * the first only: the verdicts of the other kinds are the same.
 */
const previousLosses = (setup: Setup): number[] => (setup === 'static' ? [0] : [0, 3]);

/** Limits of an exploration. */
export interface Limits {
  /** Kinds of runners. @default all */
  readonly setups?: readonly Setup[];
  /** Maximum number of faults in a trace. @default 1 */
  readonly depth?: number;
  /** Names of the faults and timeouts that can happen. @default all */
  readonly faults?: ReadonlySet<string>;
  /** Number of states after which the exploration stops. @default none */
  readonly states?: number;
  /**
   * Keys of violations (see {@link violationKey}). The exploration stops at the first other one.
   * @default it does not stop
   */
  readonly stopUnlessIn?: ReadonlySet<string>;
}

/** Result of an exploration. */
export interface Exploration {
  readonly states: number;
  readonly steps: number;
  /** Number of faults before the last state that was visited. */
  readonly depth: number;
  /** Whether all states within the limit of faults were visited. */
  readonly complete: boolean;
  readonly seconds: number;
  /** Number of states in which a runner has ended. */
  readonly ends: number;
  readonly violations: readonly Violation[];
  readonly workflow: WorkflowModel;
}

/** Explores the model. @param tables - decision tables, possibly mutated */
export function explore(limits: Limits = {}, tables?: Tables): Exploration {
  return new Exploring(limits, tables).run();
}

class Exploring {
  readonly #limits: Limits;
  readonly #depth: number;
  readonly #workflow: WorkflowModel;
  readonly #graph: StateGraph;
  /** Indexes of the states to visit, by the number of faults before them. */
  readonly #queues: number[][];
  readonly #violations = new Map<string, Violation>();
  #faults = 0;
  #steps = 0;
  #ends = 0;
  #isStopped = false;

  constructor(limits: Limits, tables?: Tables) {
    const { depth = 1 } = limits;
    this.#limits = limits;
    this.#depth = depth;
    this.#workflow = new WorkflowModel(tables);
    this.#graph = new StateGraph(TRANSITIONS);
    this.#queues = Array.from({ length: depth + 1 }, () => []);
  }

  run(): Exploration {
    const startedAt = performance.now();
    this.#addInitialStates();
    this.#visitAll();
    const complete = !this.#isEnough();
    if (complete) this.#checkLiveness();
    return {
      states: this.#graph.size,
      steps: this.#steps,
      depth: this.#faults - 1,
      complete,
      seconds: (performance.now() - startedAt) / 1_000,
      ends: this.#ends,
      violations: [...this.#violations.values()],
      workflow: this.#workflow,
    };
  }

  #isEnough(): boolean {
    return this.#isStopped || this.#graph.size >= (this.#limits.states ?? Number.POSITIVE_INFINITY);
  }

  #addInitialStates(): void {
    for (const setup of this.#limits.setups ?? SETUPS)
      for (const losses of previousLosses(setup)) {
        const knowledge = this.#workflow.initialKnowledge(setup, losses);
        this.#add(encode({ ...initialState(setup), knowledge }), -1, -1, 0);
      }
  }

  #add(key: string, parent: number, transition: number, faults: number): number {
    const { index, isCloser } = this.#graph.add(key, { parent, transition, faults });
    if (isCloser) this.#queues[faults]?.push(index);
    return index;
  }

  #visitAll(): void {
    const visited: boolean[] = [];
    for (; this.#faults <= this.#depth && !this.#isEnough(); this.#faults++) {
      const queue = this.#queues[this.#faults] as number[];
      for (let place = 0; place < queue.length && !this.#isEnough(); place++) {
        const index = queue[place] as number;
        if (visited[index] === true) continue;
        visited[index] = true;
        this.#visit(index);
      }
    }
  }

  #visit(index: number): void {
    const state = decode(this.#graph.keyAt(index));
    const message = checkState(state, this.#workflow);
    if (message !== undefined) this.#addViolation(message, state, () => this.#graph.traceTo(index));
    if (state.stage === 'completed' || state.stage === 'replacing') this.#ends++;
    if (state.stage === 'completed') return;
    for (const which of TRANSITIONS_IN[state.stage]) this.#take(which, index, state);
  }

  /** Takes a transition, if it is possible and within the limits. */
  #take(which: number, index: number, state: State): void {
    const transition = TRANSITIONS[which] as Transition;
    const faults = this.#faults + (isFault(transition) ? 1 : 0);
    const isExcluded =
      faults > this.#depth ||
      (isFault(transition) && this.#limits.faults?.has(transition.name) === false);
    if (isExcluded && !isFair(transition)) return;
    const reached = transition.next(state, this.#workflow);
    if (reached === undefined) return;
    if (isExcluded) {
      this.#graph.addExcludedTimeout(index);
      return;
    }
    const next = this.#settle(state, reached);
    const key = encode(next);
    if (key === this.#graph.keyAt(index)) return;
    this.#steps++;
    if (which < WORKFLOW.length)
      this.#checkStep(index, state, { transition: transition.name, state: next });
    const target = this.#add(key, index, which, faults);
    if (isFair(transition)) this.#graph.addFairStep(index, target);
  }

  /** Runs the workflow until it waits, if it has learned something. */
  #settle(state: State, reached: State): State {
    const workflow = this.#workflow;
    const settled =
      reached.knowledge === state.knowledge
        ? reached
        : runWorkflow(recordDeadlineJob(state, reached, workflow), workflow);
    return normalize(settled, workflow);
  }

  #checkStep(index: number, state: State, step: Step): void {
    const message = checkStep(state, step.state, this.#workflow);
    if (message !== undefined)
      this.#addViolation(message, state, () => [...this.#graph.traceTo(index), step]);
  }

  #addViolation(message: string, { setup }: State, trace: () => Step[]): void {
    const key = violationKey({ setup, message });
    if (this.#limits.stopUnlessIn?.has(key) === false) this.#isStopped = true;
    const seen = this.#violations.get(key);
    if (seen === undefined) this.#violations.set(key, { message, setup, count: 1, trace: trace() });
    else seen.count++;
  }

  /** Checks that fair transitions lead from every state to an end, or to a runner that serves. */
  #checkLiveness(): void {
    const isGoal = ({ stage, pod }: State): boolean =>
      stage === 'completed' || stage === 'replacing' || (stage === 'serving' && pod === 'running');
    for (const index of this.#graph.withoutProgress(isGoal))
      this.#addViolation(
        'no fair transition leads to an end from here',
        decode(this.#graph.keyAt(index)),
        () => this.#graph.traceTo(index),
      );
  }
}
