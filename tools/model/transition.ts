/** Transitions of the model: what can happen in a state. */
import type { State } from './state.ts';
import type { WorkflowModel } from './workflowModel.ts';

/**
 * Kind of a transition.
 * - `fair`: happens eventually while it is possible (weak fairness). Every wait must end by these.
 * - `timeout`: a fair transition that happens if no other comes before. Counts as a fault.
 * - `optional`: may or may not happen, in normal operation.
 * - `fault`: a failure, or an intervention by a user.
 *
 * The number of faults and timeouts in a trace limits the exploration.
 */
export type TransitionKind = 'fair' | 'timeout' | 'optional' | 'fault';

/** One thing that can happen. */
export interface Transition {
  readonly name: string;
  readonly kind: TransitionKind;
  /** The only stage of the workflow in which it can happen. @default any */
  readonly stage?: State['stage'];
  /** Returns the next state, or `undefined` if the transition is not possible in this state. */
  readonly next: (state: State, workflow: WorkflowModel) => State | undefined;
}

/** Whether the transition happens eventually. */
export const isFair = ({ kind }: Transition): boolean => kind === 'fair' || kind === 'timeout';

/** Whether the transition counts as a fault. */
export const isFault = ({ kind }: Transition): boolean => kind === 'fault' || kind === 'timeout';

/** Returns a transition whose guard and effect depend on the state alone. */
export const transition = (
  kind: TransitionKind,
  name: string,
  guard: (state: State) => boolean,
  effect: (state: State) => Partial<State>,
): Transition => ({
  kind,
  name,
  next: (state) => (guard(state) ? { ...state, ...effect(state) } : undefined),
});

/** Returns a transition of the workflow in one of its stages. */
export const step = (
  kind: TransitionKind,
  name: string,
  stage: State['stage'],
  next: Transition['next'],
): Transition => ({ kind, name, stage, next });
