/** Runners by their name at the CI server: a job's event names the one that runs it. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { SEARCH_ATTRIBUTES, ciEventSignal, type CiEvent } from '../../core/contract/index.ts';
import { runnersNamed } from '../../core/domain/visibility.ts';

export interface NamedRunner {
  readonly workflowId: string;
  readonly running: boolean;
  /** Name of the set that it belongs to, or belonged to. */
  readonly set: string | undefined;
}

/** A name is used once, or by one static runner, whose earlier runs are listed after the running one. */
const MAX_NAMESAKES = 5;

/** The runners of this task queue that have, or had, this name; each once. */
export async function findRunners(client: Client, taskQueue: string, name: string): Promise<NamedRunner[]> {
  const found = new Map<string, NamedRunner>();
  let seen = 0;
  for await (const { workflowId, status, typedSearchAttributes } of client.workflow.list({ query: runnersNamed(taskQueue, name), pageSize: MAX_NAMESAKES })) {
    const running = status.name === 'RUNNING';
    if (running || !found.has(workflowId)) found.set(workflowId, { workflowId, running, set: typedSearchAttributes.get(SEARCH_ATTRIBUTES.set) });
    if (++seen === MAX_NAMESAKES) break;
  }
  return [...found.values()];
}

/** @returns whether Temporal has the event; `false`: the runner has ended meanwhile, and there is nobody to tell */
export async function tellRunner({ workflow }: Client, workflowId: string, event: CiEvent): Promise<boolean> {
  try {
    await workflow.getHandle(workflowId).signal(ciEventSignal, event);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
