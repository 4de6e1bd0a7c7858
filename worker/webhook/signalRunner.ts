/** Runners by their name at the CI server: a job's event names the one that runs it. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { jobEventSignal, type RunnerJobEvent } from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';

/**
 * Signals the runner, whose workflow ID follows from its name. Searching for it would cost a
 * visibility query for each event, of which Temporal allows a namespace 10 a second by default.
 * @param name - from outside: a foreign runner may have any name
 * @returns whether Temporal accepted the event; `false` if no such runner of ours runs
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
