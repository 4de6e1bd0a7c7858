/** Runners by their name at the CI server: a job's event names the one that runs it. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { jobEventSignal, type RunnerJobEvent } from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';

/**
 * Tells the runner, whose workflow id follows from its name: looking for it would cost a query for each event, and Temporal allows a namespace 10 a
 * second by default.
 * @param name - from outside: somebody else's runner may have any
 * @returns whether Temporal has the event; `false`: no such runner of ours runs, and there is nobody to tell
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
