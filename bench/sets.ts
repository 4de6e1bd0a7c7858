/** Runner sets of the benchmarks. */
import { RUNNER_SET_WORKFLOW, setStatusQuery, setWorkflowId, type RunnerSetInput, type RunnerSetStatus } from '../workflows/setContract.ts';
import { ORGANIZATION } from './runners.ts';
import type { World } from './world.ts';

/** Starts it. @returns the name of a set whose label is its name */
export async function startSet({ client, taskQueue }: World, suffix: string, more: Partial<RunnerSetInput>): Promise<string> {
  const name = `${taskQueue}-${suffix}`;
  const input: RunnerSetInput = { name, template: { organization: ORGANIZATION, labels: ['self-hosted', name] }, ...more };
  await client.workflow.start(RUNNER_SET_WORKFLOW, { workflowId: setWorkflowId(name), taskQueue, args: [input] });
  await statusOf(client, name); // it is listed with what it covers
  return name;
}

export async function statusOf(client: World['client'], name: string): Promise<RunnerSetStatus> {
  return await client.workflow.getHandle(setWorkflowId(name)).query(setStatusQuery);
}
