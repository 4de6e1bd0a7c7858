import type { PlannedFault } from '../schedule.ts';
import type { ChaosEnvironment } from '../world.ts';

/** A fault that has begun. */
export interface Ongoing {
  /** Whom it hits, for the timeline. */
  readonly whom?: string;
  /** Makes everything right again. Absent: there is nothing to. */
  readonly end?: () => Promise<void> | void;
}

/** Lets it begin. @returns `undefined`: there is nobody whom it could hit now */
export type Fault = (
  world: ChaosEnvironment,
  planned: PlannedFault,
) => Promise<Ongoing | undefined> | Ongoing | undefined;

/** One of them, the same for the same pick. */
export function chosen<T>(items: readonly T[], pick: number): T | undefined {
  return items[Math.min(items.length - 1, Math.floor(pick * items.length))];
}
