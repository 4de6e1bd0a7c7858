import type { SweepMark } from '../contract/index.ts';
import type { SweepLimits } from '../input/sweep.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { RunnerWorkflow } from './facts.ts';

/** Next step for a workflow that has lost its pod. */
export interface StuckRunnerStep {
  /**
   * Kind of the step. `signal`: wake the workflow, so that it checks its pod. `wait`: it was
   * signaled, and no worker has processed the signal yet.
   */
  readonly kind: 'mark' | 'signal' | 'wait' | 'terminate';
  /** {@link SweepMark.unpolledSince}, including this sweep. Absent if a worker polls. */
  readonly unpolledSince?: string;
}

/**
 * Returns the next step for a stuck runner. It is marked, then signaled, and terminated if no
 * worker has processed the signal and no sweep has seen a worker for `terminateAfter`. A worker
 * that comes back before that continues with it.
 * @param mark - mark of the previous sweep
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
