/** Signals to reruns of lost jobs, found by the name of the runner in the event of a job's end. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { jobEventSignal, rerunWorkflowId, type RunnerJobEvent } from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';

/** Conclusions of jobs that may have been lost with their runner. */
const LOST: readonly (string | undefined)[] = ['failure', 'cancelled'];

/**
 * Signals the rerun of a job, if there is one, that the job has ended. Without the signal, the
 * rerun finds the end at its next check.
 * @param name - untrusted; a foreign runner may have any name
 */
export async function signalRerun(
  { workflow }: Client,
  name: string,
  event: RunnerJobEvent,
): Promise<void> {
  if (event.action !== 'completed' || !LOST.includes(event.conclusion)) return;
  if (workflowIdFromRunnerName(name) === undefined) return;
  try {
    await workflow.getHandle(rerunWorkflowId(name)).signal(jobEventSignal, event);
  } catch (error) {
    // Most jobs that fail were not lost.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}
