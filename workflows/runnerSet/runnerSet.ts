import {
  ApplicationFailure,
  CancelledFailure,
  CancellationScope,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import { admittedSet } from './admittedSet.ts';
import { FAILURE_TYPES, type AdmittedSet } from '../../core/activities/index.ts';
import {
  SEARCH_ATTRIBUTES,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import { admissionActivities } from '../shared/activityProxies.ts';
import { RunningSet } from './reconcile.ts';
import { registerQueries, registerSignals } from './handlers.ts';
import type { CarriedSet } from './carriedState.ts';
import { SetState } from './state.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/**
 * Maintains a number of runners of one template: `replicas`, or as many as the demand of jobs
 * requires. The runners are workflows of their own. A set decides only how many there are, which
 * template they have and which of them are drained.
 *
 * Completes after the command `drain` or a Temporal cancellation, once the last of its runners has
 * ended.
 *
 * @param input - validated in the first step of each run
 * @param carried - state of the previous run, if this run continues it: counters and received
 * events. It does not define what the set is.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every invalid field
 */
export async function runnerSet(
  input: RunnerSetInput,
  carried?: CarriedSet,
): Promise<RunnerSetStatus> {
  let admitted: RunningSet | undefined;
  registerQueries(input, () => admitted);
  const state = carried === undefined ? await admit(input) : await readmit(input, carried);
  const set = new RunningSet(state, commandsDone(carried));
  admitted = set;
  registerSignals(set);
  let cancelRequested = false;
  void CancellationScope.current().cancelRequested.catch(() => {
    cancelRequested = true;
    set.receive((state) => state.end('the workflow was cancelled', { cancelled: true }));
  });
  await CancellationScope.nonCancellable(async () => await set.run());
  if (cancelRequested)
    throw new CancelledFailure(`The set ${input.name} was cancelled, and its runners have left.`);
  return set.status();
}

/** Returns the IDs of the commands that previous runs have executed. */
function commandsDone(carried: CarriedSet | undefined): string[] {
  const ids: unknown = carried?.commandsDone;
  return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : [];
}

async function admit(input: RunnerSetInput): Promise<SetState> {
  const admission = await admissionActivities().admitSet({ input });
  const { spec, declaration, schedule, at } = admittedSet(admission, input);
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.set, value: spec.name },
    ...(spec.scope === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.scope, value: spec.scope.name }]),
  ]);
  return SetState.begin(spec, declaration, schedule, at);
}

/**
 * Admits the declaration again. If the worker's rules have become stricter meanwhile, the workflow
 * does not fail: the set pauses, with the reason.
 *
 * @throws ApplicationFailure `InvalidInput` (non-retryable) if there was no such run, or the set
 * cannot have been admitted
 */
async function readmit(input: RunnerSetInput, carried: CarriedSet): Promise<SetState> {
  // A cancellation waits for it, because runners exist.
  const admission = await CancellationScope.nonCancellable(
    async () => await admissionActivities().admitSet({ input, continued: true }),
  );
  const admitted = admittedSet(admission, input);
  const state = restore(carried, admitted);
  if (admitted.rejection !== undefined)
    state.pause(`its declaration is not accepted any more: ${admitted.rejection}`);
  return state;
}

/**
 * Restores the carried state, which anyone who may start a workflow can have written.
 *
 * @throws ApplicationFailure `InvalidInput` (non-retryable) if the state is invalid
 */
function restore(carried: CarriedSet, admitted: AdmittedSet): SetState {
  try {
    const state = SetState.restore(carried, admitted);
    state.updateDemand(state.facts.at);
    return state;
  } catch (error) {
    throw ApplicationFailure.nonRetryable(
      `Invalid input: the second argument must be the state that a run hands on to the next (${errorMessage(error)}); start a set with its declaration alone`,
      FAILURE_TYPES.invalidInput,
    );
  }
}
