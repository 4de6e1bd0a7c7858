/** The graph of the states that an exploration has reached. */
import { decode, type State } from './state.ts';
import type { Step } from './trace.ts';
import type { Transition } from './transition.ts';

/** How a state was reached: from which state, by which transition, after how many faults. */
interface Origin {
  /** Index of the previous state; -1 for an initial state. */
  readonly parent: number;
  /** Index of the transition; -1 for an initial state. */
  readonly transition: number;
  readonly faults: number;
}

/** States with their indexes, the shortest way to each, and the fair steps between them. */
export class StateGraph {
  readonly #transitions: readonly Transition[];
  readonly #indexes = new Map<string, number>();
  readonly #keys: string[] = [];
  // Arrays of numbers instead of objects: there are millions of states.
  readonly #parents: number[] = [];
  readonly #reachedBy: number[] = [];
  readonly #faults: number[] = [];
  readonly #fairSources: number[] = [];
  readonly #fairTargets: number[] = [];
  readonly #withExcludedTimeout = new Set<number>();

  constructor(transitions: readonly Transition[]) {
    this.#transitions = transitions;
  }

  /** Number of states. */
  get size(): number {
    return this.#keys.length;
  }

  /** Returns the key of a state. */
  keyAt(index: number): string {
    return this.#keys[index] ?? '';
  }

  /**
   * Adds a state, or a way to it with fewer faults.
   * @returns its index, and whether it is new or was reached with fewer faults than before
   */
  add(
    key: string,
    { parent, transition, faults }: Origin,
  ): { readonly index: number; readonly isCloser: boolean } {
    let index = this.#indexes.get(key);
    if (index === undefined) {
      index = this.#keys.push(key) - 1;
      this.#indexes.set(key, index);
    } else if ((this.#faults[index] ?? 0) <= faults) return { index, isCloser: false };
    this.#parents[index] = parent;
    this.#reachedBy[index] = transition;
    this.#faults[index] = faults;
    return { index, isCloser: true };
  }

  /** Adds a step by a fair transition. */
  addFairStep(source: number, target: number): void {
    this.#fairSources.push(source);
    this.#fairTargets.push(target);
  }

  /** Records that a timeout is possible in this state, but excluded by the limits. */
  addExcludedTimeout(index: number): void {
    this.#withExcludedTimeout.add(index);
  }

  /** Returns the trace to a state from an initial state. */
  traceTo(last: number): Step[] {
    const trace: Step[] = [];
    for (let index = last; index >= 0; index = this.#parents[index] ?? -1)
      trace.unshift({
        transition: this.#transitions[this.#reachedBy[index] ?? -1]?.name ?? 'initial state',
        state: decode(this.keyAt(index)),
      });
    return trace;
  }

  /**
   * Returns the states from which fair steps do not lead to a goal. A state with an excluded
   * timeout counts as a goal.
   */
  withoutProgress(isGoal: (state: State) => boolean): number[] {
    const reaches = new Uint8Array(this.size);
    this.#keys.forEach((key, index) => {
      if (this.#withExcludedTimeout.has(index) || isGoal(decode(key))) reaches[index] = 1;
    });
    // Most steps lead to a state with a higher index, so backward passes converge in a few rounds.
    for (let changed = true; changed;) {
      changed = false;
      for (let step = this.#fairSources.length - 1; step >= 0; step--) {
        const source = this.#fairSources[step] as number;
        if (reaches[source] === 0 && reaches[this.#fairTargets[step] as number] === 1) {
          reaches[source] = 1;
          changed = true;
        }
      }
    }
    return [...reaches.keys()].filter((index) => reaches[index] === 0);
  }
}
