import { describe, expect, test } from '@jest/globals';
import {
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type Client,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { drainRunners } from '../../../activities/runnerSet/drainRunners.ts';
import { findEndedRunners } from '../../../activities/runnerSet/findEndedRunners.ts';
import { startRunners } from '../../../activities/runnerSet/startRunners.ts';
import { grpcError } from '../../support/grpcError.ts';

/** Runs an activity whose client has these workflows. */
async function withClient<T>(workflow: object, run: () => Promise<T>): Promise<T> {
  const client = {
    workflow,
    withDeadline: async (_deadline: number, run: () => unknown) => await run(),
    withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run(),
  };
  const environment = new MockActivityEnvironment(
    { taskQueue: 'holdfast' },
    { client: client as unknown as Client, logger: new DefaultLogger('ERROR', () => undefined) },
  );
  return await environment.run<[], T, () => Promise<T>>(run);
}

describe('starting the runners of a set', () => {
  const start = async (
    outcome: (workflowId: string) => unknown,
    started: WorkflowStartOptions[] = [],
    notifies = false,
  ): ReturnType<typeof startRunners> => {
    const workflow = {
      start: async (_type: string, options: WorkflowStartOptions) => {
        started.push(options);
        const error = outcome(options.workflowId);
        if (error !== undefined) throw error;
      },
    };
    const runners = [
      { workflowId: 'runner-linux-a', slot: 0 },
      { workflowId: 'runner-linux-b' },
      { workflowId: 'runner-linux-c' },
    ];
    return await withClient(
      workflow,
      async () =>
        await startRunners({
          set: 'linux',
          templateHash: 'g1',
          ephemeral: true,
          notifyBusy: notifies,
          notifyEndEarly: notifies,
          priority: 'normal',
          template: { organization: 'acme' },
          runners,
        }),
    );
  };

  test('each has its ID, the task queue of the set, its template and a memo', async () => {
    const started: WorkflowStartOptions[] = [];
    expect(await start(() => undefined, started)).toEqual({ at: expect.any(Number), rejected: [] });
    expect(started).toHaveLength(3);
    expect(started[0]).toMatchObject({
      workflowId: 'runner-linux-a',
      taskQueue: 'holdfast',
      args: [{ organization: 'acme', set: 'linux' }],
      memo: { runnerSet: { templateHash: 'g1', ephemeral: true, slot: 0 } },
      requestEagerStart: true,
    });
    expect(started[1]?.memo).toEqual({ runnerSet: { templateHash: 'g1', ephemeral: true } });
    await start(() => undefined, started, true);
    expect(started.at(-1)?.memo).toEqual({
      runnerSet: { templateHash: 'g1', ephemeral: true, notifyBusy: true, notifyEndEarly: true },
    });
  });

  // The set may repeat a request for a runner that has ended in the meantime. It must not run twice.
  test('an ID is never used for a second runner, even after the first has ended', async () => {
    const started: WorkflowStartOptions[] = [];
    await start(() => undefined, started);
    expect(started.map(({ workflowIdReusePolicy }) => workflowIdReusePolicy)).toEqual(
      started.map(() => 'REJECT_DUPLICATE'),
    );
  });

  test('a runner started before counts as started; one that Temporal rejects permanently is returned with the reason', async () => {
    const outcome = (id: string): unknown =>
      ({
        'runner-linux-a': new WorkflowExecutionAlreadyStartedError('started', id, 'runner'),
        'runner-linux-b': grpcError(3, 'memo too large'),
      })[id];
    expect(await start(outcome)).toMatchObject({
      rejected: ['runner-linux-b'],
      message: 'Temporal rejected the runner: memo too large',
    });
  });

  test('any other error is retried, after all the others were tried', async () => {
    const started: WorkflowStartOptions[] = [];
    await expect(
      start((id) => (id === 'runner-linux-a' ? grpcError(14, 'unavailable') : undefined), started),
    ).rejects.toThrow('refused');
    expect(started).toHaveLength(3);
  });
});

const ended = new WorkflowNotFoundError('ended', 'runner-linux-a', undefined);

describe('draining a runner of a set', () => {
  const drain = async (failure?: Error): Promise<{ ended: string[]; signaled: unknown[] }> => {
    const signaled: unknown[] = [];
    const handle = {
      signal: async (_definition: unknown, body: unknown) => {
        signaled.push(body);
        if (failure !== undefined) throw failure;
      },
    };
    const { ended } = await withClient(
      { getHandle: () => handle },
      async () =>
        await drainRunners({ runners: [{ workflowId: 'runner-linux-a', reason: 'idle' }] }),
    );
    return { ended, signaled };
  };
  const asked = [{ mode: 'drain', planned: true, reason: 'idle' }];

  test.each([
    ['it gets a signal for a planned drain', undefined, { ended: [], signaled: asked }],
    ['it has ended', ended, { ended: ['runner-linux-a'], signaled: asked }],
  ])('%s', async (_what, failure, expected) => {
    expect(await drain(failure)).toEqual(expected);
  });

  test('any other error is retried', async () => {
    await expect(drain(grpcError(14, 'unavailable'))).rejects.toThrow('refused');
  });
});

describe('runners that are missing in all lists', () => {
  test('have ended if Temporal itself says so, or knows none', async () => {
    const handles: Record<string, unknown> = {
      'runner-a': { status: { name: 'RUNNING' } },
      'runner-b': { status: { name: 'COMPLETED' } },
      'runner-c': ended,
      // Paused in Temporal (1.30 and later): its pod continues.
      'runner-d': { status: { name: 'PAUSED' } },
    };
    const getHandle = (workflowId: string) => ({
      describe: async () => {
        if (handles[workflowId] instanceof Error) throw handles[workflowId];
        return handles[workflowId];
      },
    });
    const { ended: endedIds } = await withClient(
      { getHandle },
      async () =>
        await findEndedRunners({
          workflowIds: ['runner-a', 'runner-b', 'runner-c', 'runner-d'],
        }),
    );
    expect(endedIds).toEqual(['runner-b', 'runner-c']);
  });

  test('are queried again if Temporal does not respond', async () => {
    const getHandle = () => ({
      describe: async () => Promise.reject(grpcError(14, 'unavailable')),
    });
    await expect(
      withClient({ getHandle }, async () => await findEndedRunners({ workflowIds: ['runner-a'] })),
    ).rejects.toThrow('refused');
  });
});
