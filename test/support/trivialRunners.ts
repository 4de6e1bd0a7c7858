/**
 * The workflows of sets, and a workflow of the runner's type without a pod: it runs until it is
 * terminated, and reports when it is drained. For tests about the number of runners.
 */
import { condition, setHandler, upsertSearchAttributes } from '@temporalio/workflow';
import { SEARCH_ATTRIBUTES, cancelSignal } from '../../core/contract/index.ts';

export { runnerSet } from '../../workflows/runnerSet/runnerSet.ts';
export { setCommand } from '../../workflows/setCommand/setCommand.ts';

export async function runner(): Promise<void> {
  let drained = false;
  setHandler(cancelSignal, () => void (drained = true));
  await condition(() => drained);
  upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.phase, value: 'Draining' }]);
  await condition(() => false);
}
