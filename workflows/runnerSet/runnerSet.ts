import { CancelledFailure, CancellationScope, upsertSearchAttributes } from '@temporalio/workflow';
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
 * @param input - checked in the first step
 * @param carried - state of the run before, when this one continues it
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field
 */
export async function runnerSet(
  input: RunnerSetInput,
  carried?: CarriedSet,
): Promise<RunnerSetStatus> {
  const state = carried === undefined ? await admit(input) : SetState.restore(carried);
  const set = new RunningSet(state, carried?.commandsDone ?? []);
  registerHandlers(set);
  let cancelRequested = false;
  void CancellationScope.current().cancelRequested.catch(() => {
    cancelRequested = true;
    set.receive((state) => state.end('the workflow was cancelled', true));
  });
  await CancellationScope.nonCancellable(async () => await set.run(input));
  if (cancelRequested)
    throw new CancelledFailure(`The set ${input.name} was cancelled, and its runners have left.`);
  return set.status();
}

async function admit(input: RunnerSetInput): Promise<SetState> {
  const { spec, declaration, schedule, at } = await admissionActivities().admitSet({ input });
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.set, value: spec.name },
    ...(spec.scope === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.scope, value: spec.scope.name }]),
  ]);
  return SetState.begin(spec, declaration, schedule, at);
}
