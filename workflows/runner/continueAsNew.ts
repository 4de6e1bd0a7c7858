/** Keeps runner workflows of any duration within the limits of a history. */
import { allHandlersFinished, continueAsNew, workflowInfo } from '@temporalio/workflow';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { CarriedRunnerState } from './carriedState.ts';
import type { RunnerState } from './state.ts';

/**
 * Whether the server suggests to continue as new, and the workflow may do so. Not after the runner
 * has ended, because what follows is short. Not after a Temporal cancellation, because the next run
 * would not be cancelled.
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

/** Continues in a new run if that is suggested and allowed. Called between two waits. */
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
