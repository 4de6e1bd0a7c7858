/**
 * The workflows file of a user who runs workflows of their own in the same Worker, as
 * docs/plugin.md describes.
 */
import { proxyActivities } from '@temporalio/workflow';

export * from '../../../workflows/index.ts';

const { greet } = proxyActivities<{ greet(name: string): Promise<string> }>({
  startToCloseTimeout: '10s',
});

export async function greeting(name: string): Promise<string> {
  return await greet(name);
}
