/** Stands for a runner's life: it ends at once, or never. */
import { condition } from '@temporalio/workflow';

export async function runner({ name }: { name?: string }): Promise<void> {
  if (name !== 'ends') await condition(() => false);
}
