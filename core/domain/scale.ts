/** Computes the number of runners of a set. Pure. */
import type { SetScale } from '../contract/index.ts';

/**
 * A validated {@link SetScale}. `replaceAhead` is the maximum number of replacements for busy
 * runners that are started ahead.
 */
export type ScaleBounds = { readonly replaceAhead: number } & (
  | { readonly kind: 'fixed'; readonly replicas: number }
  | { readonly kind: 'elastic'; readonly minIdle: number; readonly max: number }
);

/** Maximum number of held runners of a set. Continue-as-new carries their names over. */
export const MAX_HOLDS = 1_000;

/** Current demand for runners. */
export interface Demand {
  readonly queued: number;
  readonly running: number;
  /** Ephemeral runners that have run their job and have not ended yet. They take no further job. */
  readonly finished: number;
  readonly busyRunners: number;
  /** Queued jobs that the last check of the CI server found queued. */
  readonly confirmedQueued: number;
  /** Runners that were busy before that check. None of them runs one of those jobs. */
  readonly busyBeforeCheck: number;
}

/**
 * Returns the validated form of a scale. `minIdle` and `max` default to 0.
 * @param replaceAhead - maximum number of replacements started ahead
 */
export function toBounds(
  { replicas, minIdle = 0, max = 0 }: SetScale,
  replaceAhead = 0,
): ScaleBounds {
  return replicas === undefined
    ? { kind: 'elastic', minIdle, max, replaceAhead }
    : { kind: 'fixed', replicas, replaceAhead };
}

/** Returns the bounds with at most this many runners. A fixed number stays as it is. */
export function limitBounds(bounds: ScaleBounds, runners: number): ScaleBounds {
  if (bounds.kind === 'fixed' || bounds.max <= runners) return bounds;
  return { ...bounds, max: runners, minIdle: Math.min(bounds.minIdle, runners) };
}

/** Returns the minimum and maximum number of runners. */
export function minAndMax(bounds: ScaleBounds): { min: number; max: number } {
  return bounds.kind === 'fixed'
    ? { min: bounds.replicas, max: bounds.replicas + bounds.replaceAhead }
    : { min: bounds.minIdle, max: bounds.max };
}

/**
 * Returns the maximum number of runners at a time, including draining ones. A fixed size counts
 * only runners that serve, so a draining runner is replaced immediately and there is no maximum.
 */
export function maxPods(bounds: ScaleBounds): number {
  return bounds.kind === 'fixed' ? Number.POSITIVE_INFINITY : bounds.max;
}

/**
 * Returns whether idle runners are kept in addition to busy ones. Then the set must be notified
 * immediately when a runner becomes busy.
 */
export function keepsIdleRunners(bounds: ScaleBounds): boolean {
  return bounds.replaceAhead > 0 || (bounds.kind === 'elastic' && bounds.minIdle > 0);
}

/**
 * Returns the desired number of runners: the idle runners to keep, and one for each queued or
 * assigned job, up to the maximum. Runners that are about to end do not count toward these. Runners
 * that are busy with jobs of which no event has reported are counted too, so that those that are
 * kept are really idle. With a fixed size, and in elastic sets with fewer idle runners, each busy
 * runner has a replacement started ahead, at most `replaceAhead` in total.
 */
export function desiredSize(bounds: ScaleBounds, asking: Demand): number {
  const ahead = Math.min(bounds.replaceAhead, asking.busyRunners);
  if (bounds.kind === 'fixed') return bounds.replicas + ahead;
  return Math.min(bounds.max, Math.max(bounds.minIdle, ahead) + runnersForJobs(asking));
}

/** Returns the number of runners that jobs need, whether events have reported the jobs or not. */
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
