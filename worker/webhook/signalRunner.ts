/** Signals to runners, found by the name of the runner in a job's event. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { jobEventSignal, type RunnerJobEvent } from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';

/**
 * Signals the runner, whose workflow ID follows from its name. Searching for it would cost a
 * visibility query for each event, of which Temporal allows a namespace 10 per second by default.
 * @param name - untrusted; a foreign runner may have any name
 * @returns the workflow ID of the runner; `undefined` if no such runner is running
 */
export async function signalRunner(
  { workflow }: Client,
  name: string,
  event: RunnerJobEvent,
): Promise<string | undefined> {
  const workflowId = workflowIdFromRunnerName(name);
  if (workflowId === undefined) return undefined;
  try {
    await workflow.getHandle(workflowId).signal(jobEventSignal, event);
    return workflowId;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}
