/** A state of a runner set in its model. */
import type { PlannedRunner } from '../../workflows/runnerSet/plan.ts';

/** Surge of the set. */
export const MAX_SURGE = 1;

/** A runner: whether its template is current, its state, and `!` if it is held. */
export type ModelRunner = `${'new' | 'old'} ${PlannedRunner['state']}${'' | '!'}`;

/** A state of a set. */
export interface SetState {
  readonly ephemeral: boolean;
  readonly desired: number;
  /** Whether the time has passed during which the set does not scale down. */
  readonly settled: boolean;
  readonly runners: readonly ModelRunner[];
}
