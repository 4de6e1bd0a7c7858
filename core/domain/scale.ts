/** Number of runners that a set wants. Pure. */
import type { SetScale } from '../contract/index.ts';

/** A validated {@link SetScale}; `warm`: successors of busy runners that are started ahead, at the most. */
export type ScaleBounds = { readonly replaceAhead: number } & (
  | { readonly kind: 'fixed'; readonly replicas: number }
  | { readonly kind: 'elastic'; readonly minIdle: number; readonly max: number }
);

/** Maximum number of held runners of a set. Continue-as-new carries their names over. */
export const MAX_HOLDS = 1_000;

/** What asks for runners. */
export interface Demand {
  readonly queued: number;
  readonly running: number;
  /** Ephemeral runners that have had their job and have not ended yet: they take no other. */
  readonly finished: number;
  readonly busyRunners: number;
  /** Of the queued ones, those that the last look at the CI server found queued. */
  readonly confirmedQueued: number;
  /** Runners that were busy before that look: none of them has one of those. */
  readonly busyBeforeCheck: number;
}

/**
 * Returns the validated form of a scale. `minIdle` and `max` default to 0.
 * @param replaceAhead - maximum number of successors started ahead
 */
export function toBounds(
  { replicas, minIdle = 0, max = 0 }: SetScale,
  replaceAhead = 0,
): ScaleBounds {
  return replicas === undefined
    ? { kind: 'elastic', minIdle, max, replaceAhead }
    : { kind: 'fixed', replicas, replaceAhead };
}

/** Least and most runners of these bounds. */
export function minAndMax(bounds: ScaleBounds): { min: number; max: number } {
  return bounds.kind === 'fixed'
    ? { min: bounds.replicas, max: bounds.replicas + bounds.replaceAhead }
    : { min: bounds.minIdle, max: bounds.max };
}

/** Runners that there may be at a time, those that leave included. A fixed number is one of runners that serve: who leaves has a successor at once. */
export function maxPods(bounds: ScaleBounds): number {
  return bounds.kind === 'fixed' ? Number.POSITIVE_INFINITY : bounds.max;
}

/** Are runners kept ready beyond those that are busy? Then the set has to hear at once that one has become busy. */
export function keepsIdleRunners(bounds: ScaleBounds): boolean {
  return bounds.replaceAhead > 0 || (bounds.kind === 'elastic' && bounds.minIdle > 0);
}

/**
 * Idle runners kept ready, and one for each job that is queued or assigned, up to the bound. Runners that are about to end take no place
 * from these. Runners that are busy with jobs of which no event has told count as well, so that the ones kept ready are idle ones.
 * A fixed number, and elastic sets with fewer idle ones, have a successor ahead for each busy runner, `warm` at the most.
 */
export function desiredSize(bounds: ScaleBounds, asking: Demand): number {
  const ahead = Math.min(bounds.replaceAhead, asking.busyRunners);
  if (bounds.kind === 'fixed') return bounds.replicas + ahead;
  return Math.min(bounds.max, Math.max(bounds.minIdle, ahead) + runnersForJobs(asking));
}

/** Runners that jobs need, told or not. */
export function runnersForJobs({
  queued,
  running,
  finished,
  busyRunners,
  confirmedQueued,
  busyBeforeCheck,
}: Demand): number {
  return Math.max(queued + running + finished, busyRunners, busyBeforeCheck + confirmedQueued);
}
