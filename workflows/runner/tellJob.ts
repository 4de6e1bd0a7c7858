/** What a step tells its job: the job's clock starts with its first pod. A job that is gone costs the step nothing. */
import { getExternalWorkflowHandle } from '@temporalio/workflow';
import { stepPodSignal } from '../../core/contract/index.ts';
import type { RunnerLife } from './life.ts';
import { tolerate } from './tellSet.ts';

/** Each time that it has a pod. */
export async function tellJobOfPod({ workflowId, spec, runner }: RunnerLife): Promise<void> {
  const { job } = spec;
  const { pod } = runner;
  if (job === undefined || pod === undefined) return;
  await tolerate({ job }, async () => await getExternalWorkflowHandle(job).signal(stepPodSignal, { workflowId, pod: pod.name }));
}
