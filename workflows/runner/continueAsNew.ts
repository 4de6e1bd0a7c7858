/** How a life of any length stays within what a history may hold. */
import { allHandlersFinished, continueAsNew, workflowInfo } from '@temporalio/workflow';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { CarriedRunnerState } from './carriedState.ts';
import type { RunnerState } from './state.ts';

/**
 * Does the server suggest to continue as new, and may it be? Only a life whose runner has not ended: what follows its end is short. Nor one
 * that is plainly cancelled: its next run would not be.
 */
export function canContinueAsNew({ runner, workflowCancelled }: RunnerState): boolean {
  return (
    runner.pod?.ended === false &&
    runner.ended === undefined &&
    !workflowCancelled &&
    workflowInfo().continueAsNewSuggested &&
    allHandlersFinished()
  );
}

/** Between two waits: goes on in a new run, where that is to be. */
export async function continueAsNewIfSuggested(
  state: RunnerState,
  input: RunnerInput,
): Promise<void> {
  if (canContinueAsNew(state))
    await continueAsNew<(input: RunnerInput, carried: CarriedRunnerState) => Promise<unknown>>(
      input,
      state.toCarriedState(),
    );
}
