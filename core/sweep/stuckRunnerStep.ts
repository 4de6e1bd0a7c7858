import type { SweepMark } from '../contract/index.ts';
import type { SweepLimits } from '../input/sweep.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { RunnerWorkflow } from './facts.ts';

/** What is next for a workflow that has lost its pod. */
export interface StuckRunnerStep {
  /** `signal`: wake it, so that it looks for its pod. `wait`: it was woken, and no worker has taken that up yet. */
  readonly kind: 'mark' | 'signal' | 'wait' | 'terminate';
  /** {@link SweepMark.unpolledSince}, this sweep included. Absent: a worker polls. */
  readonly unpolledSince?: string;
}

/**
 * Found, woken, and given up when nobody has taken notice and no sweep has seen a worker for
 * `terminateAfter`: a worker that comes back sooner goes on with it.
 * @param mark - the last sweep's
 */
export function stuckRunnerStep(
  { hasPoller, taskPendingSinceMs }: Pick<RunnerWorkflow, 'hasPoller' | 'taskPendingSinceMs'>,
  mark: SweepMark | undefined,
  nowMs: number,
  { terminateAfterMs }: Pick<SweepLimits, 'terminateAfterMs'>,
): StuckRunnerStep {
  const unpolledSince = hasPoller
    ? undefined
    : (mark?.unpolledSince ?? new Date(nowMs).toISOString());
  const step = (kind: StuckRunnerStep['kind']): StuckRunnerStep => ({
    kind,
    ...omitUndefined({ unpolledSince }),
  });
  if (mark === undefined) return step('mark');
  if (taskPendingSinceMs === undefined) return step('signal');
  const isGivenUp =
    unpolledSince !== undefined && Date.parse(unpolledSince) + terminateAfterMs <= nowMs;
  return step(isGivenUp ? 'terminate' : 'wait');
}
