/** Keeps runner workflows of any duration within the limits of a history. */
import { allHandlersFinished, makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { CarriedRunnerState } from './carriedState.ts';
import type { RunnerState } from './state.ts';

/**
 * Whether a static runner is pinned to a worker version that is no longer current. It may live for
 * months, and the old workers would have to stay as long. A runner for one job ends on its version.
 */
function isOutdated({ spec }: RunnerState): boolean {
  return !spec.ephemeral && workflowInfo().targetWorkerDeploymentVersionChanged;
}

/**
 * Whether the workflow is to continue as new, because the server suggests it or another worker
 * version is current, and may do so. Not after the runner
 * has ended, because what follows is short. Not after a Temporal cancellation, because the next run
 * would not be cancelled.
 */
export function canContinueAsNew(state: RunnerState): boolean {
  const { runner, workflowCancelled } = state;
  return (
    runner.pod?.ended === false &&
    // A sidecar may still run after the runner has exited.
    runner.pod.exit === undefined &&
    runner.ended === undefined &&
    !workflowCancelled &&
    (workflowInfo().continueAsNewSuggested || isOutdated(state)) &&
    allHandlersFinished()
  );
}

/** Continues in a new run if that is suggested and allowed. Called between two waits. */
export async function continueAsNewIfSuggested(
  state: RunnerState,
  input: RunnerInput,
): Promise<void> {
  if (!canContinueAsNew(state)) return;
  const continueAsNew = makeContinueAsNewFunc<
    (input: RunnerInput, carried: CarriedRunnerState) => Promise<unknown>
  >(isOutdated(state) ? { initialVersioningBehavior: 'AUTO_UPGRADE' } : {});
  await continueAsNew(input, state.toCarriedState());
}
