import { expect, test } from '@jest/globals';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { RunnerJobEvent } from '../../../core/contract/index.ts';
import { signalRunner } from '../../../worker/webhook/signalRunner.ts';

const event: RunnerJobEvent = { action: 'in_progress', jobId: '7', runnerName: 'x' };

async function send(
  name: string,
  failure?: Error,
): Promise<{ signaled: string | undefined; queried: string[] }> {
  const queried: string[] = [];
  const getHandle = (workflowId: string): object => ({
    signal: async () => {
      queried.push(workflowId);
      if (failure !== undefined) throw failure;
    },
  });
  return {
    signaled: await signalRunner({ workflow: { getHandle } } as unknown as Client, name, event),
    queried,
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
  expect(await send(name)).toEqual({ signaled: workflowId, queried: [workflowId] });
  expect(await send(name, new WorkflowNotFoundError('not found', workflowId, undefined))).toEqual({
    signaled: undefined,
    queried: [workflowId],
  });
  await expect(send(name, new Error('down'))).rejects.toThrow('down');
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
  expect(await send(name)).toEqual({ signaled: undefined, queried: [] });
});
