/** Signals to runners, found by the name of the runner in a job's event. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { jobEventSignal, type RunnerJobEvent } from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';

/**
 * Signals the runner, whose workflow ID follows from its name. Searching for it would cost a
 * visibility query for each event, of which Temporal allows a namespace 10 per second by default.
 * @param name - untrusted; a foreign runner may have any name
 * @returns whether Temporal accepted the event; `false` if no such runner is running
 */
export async function signalRunner(
  { workflow }: Client,
  name: string,
  event: RunnerJobEvent,
): Promise<boolean> {
  const workflowId = workflowIdFromRunnerName(name);
  if (workflowId === undefined) return false;
  try {
    await workflow.getHandle(workflowId).signal(jobEventSignal, event);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
