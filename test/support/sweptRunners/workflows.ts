/** Replaces a runner's workflow: it ends when a signal gives it its name, immediately, or never. */
import { condition, defineSignal, setHandler, upsertSearchAttributes } from '@temporalio/workflow';
import { SEARCH_ATTRIBUTES } from '../../../core/contract/index.ts';

export const hadName = defineSignal<[string]>('hadName');

export async function runner({ name }: { name?: string }): Promise<void> {
  let ends = name === 'ends';
  setHandler(hadName, (had) => {
    upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.name, value: had }]);
    ends = true;
  });
  await condition(() => ends);
}
