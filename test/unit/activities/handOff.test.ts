/** The sweep hands a registration off to a separate workflow. */
import { expect, test } from '@jest/globals';
import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import { handOff } from '../../../activities/sweep/handOff.ts';
import { DEREGISTRATION_WORKFLOW } from '../../../core/contract/index.ts';

const ID = 'deregistration-w-0123456789';

async function handOffWith(start: (...args: unknown[]) => Promise<unknown>): Promise<string> {
  return await handOff(
    { workflow: { start } } as unknown as Client,
    'q',
    { name: 'w-0123456789', id: '7' },
    { scope: { kind: 'repository', name: 'acme/app' }, credential: 'app' },
    'why',
  );
}

test('starts a workflow and returns its ID', async () => {
  const started: unknown[][] = [];
  expect(await handOffWith(async (...args) => started.push(args))).toBe(ID);
  expect(started).toEqual([
    [
      DEREGISTRATION_WORKFLOW,
      expect.objectContaining({
        workflowId: ID,
        taskQueue: 'q',
        args: [
          {
            repository: 'acme/app',
            credential: 'app',
            runner: { name: 'w-0123456789', id: '7' },
            reason: 'why',
          },
        ],
      }),
    ],
  ]);
});

test('returns the same if it already runs', async () => {
  expect(
    await handOffWith(async () => {
      throw new WorkflowExecutionAlreadyStartedError('runs', ID, DEREGISTRATION_WORKFLOW);
    }),
  ).toBe(ID);
});

test('a registration that nothing continues to remove is an error, not handed off', async () => {
  const unavailable = new Error('Temporal is unavailable');
  await expect(
    handOffWith(async () => {
      throw unavailable;
    }),
  ).rejects.toBe(unavailable);
});
