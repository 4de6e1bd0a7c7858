/**
 * Notifies the job of a step: that the step has a pod, the first of which starts the job's clock,
 * and that the step has ended. A job that no longer exists does not affect the step.
 */
import { getExternalWorkflowHandle } from '@temporalio/workflow';
import { stepEndedSignal, stepPodCreatedSignal } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { verdictFacts } from './endFacts.ts';
import type { RunnerState } from './state.ts';
import { notifyBestEffort } from './notifySet.ts';
import type { Unregistered } from './unregister.ts';
import { decideVerdict } from './verdict.ts';

/** Notifies the job that the step has a pod. Called for every pod of the step. */
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
 * Notifies the job once no process of the step is running. This is earlier than the result of the
 * step, which needs the pod's deletion: a kubelet takes seconds for that. Sent only if the pod
 * itself reports how the command ended, because a command that is merely overdue may still be
 * running.
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
  const event = {
    workflowId,
    firstRunId: runner.identity.firstRunId,
    outcome,
    message,
    exitCode: pod.exit.code,
    attempt: runner.identity.attempt,
    ...omitUndefined({ cause }),
  };
  await notifyBestEffort(
    { job },
    async () => await getExternalWorkflowHandle(job).signal(stepEndedSignal, event),
  );
}
