/** What a step tells its job: that it has a pod, with the first of which the job's clock starts, and that it is over. A job that is gone costs the step nothing. */
import { getExternalWorkflowHandle } from '@temporalio/workflow';
import { stepEndedSignal, stepPodCreatedSignal } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { RunnerState } from './state.ts';
import { notifyBestEffort } from './notifySet.ts';
import type { Unregistered } from './unregister.ts';
import { decideVerdict, verdictFacts } from './verdict.ts';

/** Each time that it has a pod. */
export async function notifyJobPodCreated({
  workflowId,
  spec,
  runner,
}: RunnerState): Promise<void> {
  const { job } = spec;
  const { pod } = runner;
  if (job === undefined || pod === undefined) return;
  await notifyBestEffort(
    { job },
    async () =>
      await getExternalWorkflowHandle(job).signal(stepPodCreatedSignal, {
        workflowId,
        pod: pod.name,
      }),
  );
}

/**
 * Once nothing of the step runs any more, ahead of its result, which comes when its pod is gone: a kubelet takes seconds for that. Told only where the pod itself says how the
 * command ended: one that is merely overdue may run on.
 */
export async function notifyJobStepEnded(
  state: RunnerState,
  unregistered: Unregistered,
): Promise<void> {
  const { workflowId, spec, runner } = state;
  const { job } = spec;
  const { pod } = runner;
  if (job === undefined || pod?.exit === undefined || !pod.ended) return;
  const decision = decideVerdict(verdictFacts(state, unregistered));
  if (decision.kind !== 'end') return;
  const { outcome, cause, message } = decision;
  const news = {
    workflowId,
    outcome,
    message,
    exitCode: pod.exit.code,
    attempt: runner.identity.attempt,
    ...omitUndefined({ cause }),
  };
  await notifyBestEffort(
    { job },
    async () => await getExternalWorkflowHandle(job).signal(stepEndedSignal, news),
  );
}
