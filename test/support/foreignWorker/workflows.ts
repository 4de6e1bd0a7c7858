/** Workflows file of somebody who runs workflows of their own beside Holdfast's, as docs/plugin.md tells them to write it. */
import { proxyActivities } from '@temporalio/workflow';

export * from '../../../workflows/index.ts';

const { greet } = proxyActivities<{ greet(name: string): Promise<string> }>({
  startToCloseTimeout: '10s',
});

export async function greeting(name: string): Promise<string> {
  return await greet(name);
}
