/** Holdfast's workflows, with a runner that only loses its job on a signal. */
import {
  ParentClosePolicy,
  condition,
  defineSignal,
  setHandler,
  startChild,
} from '@temporalio/workflow';
import { RERUN_WORKFLOW, rerunWorkflowId, type RerunInput } from '../../../core/contract/index.ts';

export * from '../../../workflows/index.ts';

export const lostSignal = defineSignal<[RerunInput]>('lost');

/** The name of a runner contains a hash of its execution, so it is known only when it runs. */
export async function runner(): Promise<void> {
  let lost: RerunInput | undefined;
  setHandler(lostSignal, (input) => void (lost = input));
  await condition(() => lost !== undefined);
  if (lost === undefined) return;
  await startChild(RERUN_WORKFLOW, {
    workflowId: rerunWorkflowId(lost.runnerName),
    args: [lost],
    parentClosePolicy: ParentClosePolicy.ABANDON,
  });
}
