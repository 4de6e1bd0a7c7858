import type { PlannedFault } from '../schedule.ts';
import type { ChaosEnvironment } from '../world.ts';

/** A fault that has begun. */
export interface ActiveFault {
  /** Component or object that the fault affects, for the timeline. */
  readonly target?: string;
  /** Ends the fault. Absent if the fault has no duration. */
  readonly end?: () => Promise<void> | void;
}

/**
 * Begins the fault.
 * @returns `undefined` if nothing exists that it can affect
 */
export type Fault = (
  world: ChaosEnvironment,
  planned: PlannedFault,
) => Promise<ActiveFault | undefined> | ActiveFault | undefined;

/**
 * Returns one of the items, the same one for the same pick.
 * @param pick - 0 to 1
 */
export function choose<T>(items: readonly T[], pick: number): T | undefined {
  return items[Math.min(items.length - 1, Math.floor(pick * items.length))];
}
