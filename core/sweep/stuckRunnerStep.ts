import type { SweepMark } from '../contract/index.ts';
import type { RunnerWorkflow } from './facts.ts';

/** Sweeps in a row that find nobody at a zombie's task queues before it is terminated. */
const STUCK_RUNNER_SWEEPS = 3;

/** What is next for a life that has lost its pod. */
export type StuckRunnerStep = {
  /** `signal`: wake it, so that it looks for its pod. `wait`: it was woken, and no worker has taken that up yet. */
  readonly kind: 'mark' | 'signal' | 'wait' | 'terminate';
  /** {@link SweepMark.sweepsWithoutPoller}, this sweep included. */
  readonly sweepsWithoutPoller: number;
};

/** Found, woken, and then given up, if nobody has taken notice and no worker was there in three sweeps. @param mark - the last sweep's */
export function stuckRunnerStep(
  { hasPoller, taskPendingSinceMs }: Pick<RunnerWorkflow, 'hasPoller' | 'taskPendingSinceMs'>,
  mark: SweepMark | undefined,
): StuckRunnerStep {
  const sweepsWithoutPoller = hasPoller ? 0 : (mark?.sweepsWithoutPoller ?? 0) + 1;
  if (mark === undefined) return { kind: 'mark', sweepsWithoutPoller };
  if (taskPendingSinceMs === undefined) return { kind: 'signal', sweepsWithoutPoller };
  return {
    kind: sweepsWithoutPoller >= STUCK_RUNNER_SWEEPS ? 'terminate' : 'wait',
    sweepsWithoutPoller,
  };
}
