import {
  ApplicationFailure,
  CancelledFailure,
  CancellationScope,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import { FAILURE_TYPES, type AdmittedSet } from '../../core/activities/index.ts';
import {
  SEARCH_ATTRIBUTES,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import { admissionActivities } from '../shared/activityProxies.ts';
import { RunningSet } from './reconcile.ts';
import { registerHandlers } from './handlers.ts';
import type { CarriedSet } from './carriedState.ts';
import { SetState } from './state.ts';

/**
 * Keeps a number of runners alive from one template: `replicas`, or as many as the demand of jobs asks for. Their lives are their own
 * workflows'; a set decides only how many there are, of which template, and which are drained.
 * Ends after the command `drain`, or plain cancellation, when the last of its runners has left.
 * @param input - checked in the first step of each run
 * @param carried - state of the run before, when this one continues it: what was counted and heard, which says nothing of what the set is
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field
 */
export async function runnerSet(
  input: RunnerSetInput,
  carried?: CarriedSet,
): Promise<RunnerSetStatus> {
  const state = carried === undefined ? await admit(input) : await readmit(input, carried);
  const set = new RunningSet(state, commandsDone(carried));
  registerHandlers(set);
  let cancelRequested = false;
  void CancellationScope.current().cancelRequested.catch(() => {
    cancelRequested = true;
    set.receive((state) => state.end('the workflow was cancelled', true));
  });
  await CancellationScope.nonCancellable(async () => await set.run());
  if (cancelRequested)
    throw new CancelledFailure(`The set ${input.name} was cancelled, and its runners have left.`);
  return set.status();
}

/** IDs of the commands that the runs before have carried out. */
function commandsDone(carried: CarriedSet | undefined): string[] {
  const ids: unknown = carried?.commandsDone;
  return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : [];
}

async function admit(input: RunnerSetInput): Promise<SetState> {
  const { spec, declaration, schedule, at } = await admissionActivities().admitSet({ input });
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.set, value: spec.name },
    ...(spec.scope === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.scope, value: spec.scope.name }]),
  ]);
  return SetState.begin(spec, declaration, schedule, at);
}

/**
 * Admits the declaration again. Where the worker's rules have become stricter meanwhile, nothing fails: the set pauses, and says why.
 * @throws ApplicationFailure `InvalidInput` (non-retryable): there was no such run, or the set cannot have been admitted
 */
async function readmit(input: RunnerSetInput, carried: CarriedSet): Promise<SetState> {
  // A cancellation waits for it, because runners are there.
  const admitted = await CancellationScope.nonCancellable(
    async () => await admissionActivities().admitSet({ input, continued: true }),
  );
  const state = restore(carried, admitted);
  if (admitted.rejection !== undefined)
    state.pause(`its declaration is not accepted any more: ${admitted.rejection}`);
  return state;
}

/** Anybody can have written it. */
function restore(carried: CarriedSet, admitted: AdmittedSet): SetState {
  try {
    const state = SetState.restore(carried, admitted);
    state.updateDemand(state.facts.at);
    return state;
  } catch (error) {
    throw ApplicationFailure.nonRetryable(
      `Invalid input: the second argument must be the state that a run hands on to the next (${error instanceof Error ? error.message : String(error)}); start a set with its declaration alone`,
      FAILURE_TYPES.invalidInput,
    );
  }
}
