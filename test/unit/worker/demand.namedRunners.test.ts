import { expect, test } from '@jest/globals';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { RunnerJobEvent } from '../../../core/contract/index.ts';
import { signalRunner } from '../../../worker/webhook/signalRunner.ts';

const event: RunnerJobEvent = { action: 'in_progress', jobId: '7', runnerName: 'x' };

async function tell(
  name: string,
  failure?: Error,
): Promise<{ signaled: string | undefined; asked: string[] }> {
  const asked: string[] = [];
  const getHandle = (workflowId: string): object => ({
    signal: async () => {
      asked.push(workflowId);
      if (failure !== undefined) throw failure;
    },
  });
  return {
    signaled: await signalRunner({ workflow: { getHandle } } as unknown as Client, name, event),
    asked,
  };
}

test.each([
  ["a set's runner", 'linux-abcdefghij-0123456789', 'runner-linux-abcdefghij'],
  [
    'the third replacement of a runner',
    'linux-abcdefghij-0123456789-r3',
    'runner-linux-abcdefghij',
  ],
  ['a runner without a set', 'brisk-otter-7f3a-0a1b2c3d4e', 'runner-brisk-otter-7f3a'],
])('%s is recognized by its name, without a list', async (_what, name, workflowId) => {
  expect(await tell(name)).toEqual({ signaled: workflowId, asked: [workflowId] });
  expect(await tell(name, new WorkflowNotFoundError('not found', workflowId, undefined))).toEqual({
    signaled: undefined,
    asked: [workflowId],
  });
  await expect(tell(name, new Error('down'))).rejects.toThrow('down');
});

test.each([
  '',
  'GitHub Actions 7',
  'linux',
  'linux-0123456789x',
  '-0123456789',
  '../set-linux-0123456789',
  'set linux-0123456789',
  `${'x'.repeat(51)}-0123456789`,
  'linux-0123456789\n',
  'linux-ABCDEF0123',
])('%j is not a name of Holdfast: nothing is queried', async (name) => {
  expect(await tell(name)).toEqual({ signaled: undefined, asked: [] });
});
