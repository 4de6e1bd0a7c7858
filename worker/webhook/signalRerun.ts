/** Reruns of lost jobs, by the name of the runner that the event of a job's end contains. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { jobEventSignal, rerunWorkflowId, type RunnerJobEvent } from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';

/** Conclusions of jobs that may have been lost with their runner. */
const LOST: readonly (string | undefined)[] = ['failure', 'cancelled'];

/**
 * Signals the rerun of a job, if there is one, that the job has ended. It finds the end without the
 * signal, too, at its next check.
 * @param name - from outside: a foreign runner may have any name
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
