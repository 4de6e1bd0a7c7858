/**
 * First step of a run that continues another: validates the input again and restores the carried
 * state.
 */
import { ApplicationFailure, CancellationScope } from '@temporalio/workflow';
import { FAILURE_TYPES, type AdmittedRunner } from '../../core/activities/index.ts';
import type { RunnerInput } from '../../core/contract/index.ts';
import { toCallResult, workerActivities } from '../shared/activityProxies.ts';
import type { CarriedRunnerState } from './carriedState.ts';
import { parseCarriedState } from './parseCarriedState.ts';
import type { RunnerState } from './state.ts';

/**
 * Admits the input again. If the worker's rules have become stricter meanwhile, the workflow does
 * not fail: the runner drains, with the reason.
 *
 * @param carried - untrusted, because anyone who may start a workflow can write it
 * @throws ApplicationFailure `InvalidInput` (non-retryable) if there was no such run, or it cannot
 * have been admitted
 */
export async function readmit(
  state: RunnerState,
  input: RunnerInput,
  carried: CarriedRunnerState,
): Promise<void> {
  const known = parseCarriedState(carried, state.createdAtMs);
  if (known === undefined)
    throw ApplicationFailure.nonRetryable(
      'Invalid input: the second argument is reserved for continue-as-new; start a runner with one argument',
      FAILURE_TYPES.invalidInput,
    );
  state.restore(known);
  const spec = await admitAgain(state, input, known);
  state.admit(spec);
  if (spec.rejection !== undefined)
    state.requestCancel({
      mode: 'drain',
      reason: `its input is no longer accepted: ${spec.rejection}`,
      by: 'drain',
    });
}

/**
 * Admits the input in a regular activity, not a local one, because deadlines are evaluated
 * immediately afterwards. A cancellation waits for it, because a runner exists.
 */
async function admitAgain(
  { workflowId, firstRunId }: RunnerState,
  input: RunnerInput,
  { location }: CarriedRunnerState,
): Promise<AdmittedRunner> {
  const called = await CancellationScope.nonCancellable(
    async () =>
      await toCallResult(
        workerActivities('Validate the input again').admitRunner({
          input,
          workflowId,
          firstRunId,
          continued: { location },
        }),
      ),
  );
  if (called.kind === 'done') return called.value;
  const { type, message } =
    called.kind === 'failed'
      ? called
      : { type: FAILURE_TYPES.invalidInput, message: 'The validation of the input was cancelled' };
  throw ApplicationFailure.nonRetryable(message, type);
}
