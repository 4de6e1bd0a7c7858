import { describe, expect, test } from '@jest/globals';
import { ServiceError, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError, type Client, type WorkflowStartOptions } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { RUNNER_LEAVES_ALREADY } from '../../../core/contract/index.ts';
import { drainRunners } from '../../../activities/sets/drainRunners.ts';
import { startRunners } from '../../../activities/sets/startRunners.ts';

const grpc = (code: number, details: string): Error => new ServiceError('refused', { cause: Object.assign(new Error(details), { code, details, metadata: {} }) });

/** Runs an activity whose client has these workflows. */
async function withClient<T>(workflow: object, run: () => Promise<T>): Promise<T> {
  const client = { workflow, withDeadline: async (_deadline: number, run: () => unknown) => await run(), withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run() };
  const environment = new MockActivityEnvironment({ taskQueue: 'holdfast' }, { client: client as unknown as Client, logger: new DefaultLogger('ERROR', () => undefined) });
  return await environment.run<[], T, () => Promise<T>>(run);
}

describe('starting the runners of a set', () => {
  const start = async (outcome: (workflowId: string) => unknown, started: WorkflowStartOptions[] = []): ReturnType<typeof startRunners> => {
    const workflow = {
      start: async (_type: string, options: WorkflowStartOptions) => {
        started.push(options);
        const error = outcome(options.workflowId);
        if (error !== undefined) throw error;
      },
    };
    const runners = [{ workflowId: 'runner-linux-a', slot: 0 }, { workflowId: 'runner-linux-b' }, { workflowId: 'runner-linux-c' }];
    return await withClient(workflow, async () => await startRunners({ set: 'linux', generation: 'g1', ephemeral: true, template: { organization: 'acme' }, runners }));
  };

  test('each has its id, the queue of the set, its template and a memo', async () => {
    const started: WorkflowStartOptions[] = [];
    expect(await start(() => undefined, started)).toEqual({ at: expect.any(Number), refused: [] });
    expect(started).toHaveLength(3);
    expect(started[0]).toMatchObject({ workflowId: 'runner-linux-a', taskQueue: 'holdfast', args: [{ organization: 'acme', set: 'linux' }], memo: { ofSet: { generation: 'g1', ephemeral: true, slot: 0 } } });
    expect(started[1]?.memo).toEqual({ ofSet: { generation: 'g1', ephemeral: true } });
  });

  test('one that was started before is as good; one that Temporal refuses for good comes back with the reason', async () => {
    const outcome = (id: string): unknown => ({ 'runner-linux-a': new WorkflowExecutionAlreadyStartedError('started', id, 'runner'), 'runner-linux-b': grpc(3, 'memo too large') })[id];
    expect(await start(outcome)).toMatchObject({ refused: ['runner-linux-b'], why: 'Temporal refused the runner: memo too large' });
  });

  test('anything else is tried again, after all the others were tried', async () => {
    const started: WorkflowStartOptions[] = [];
    await expect(start((id) => (id === 'runner-linux-a' ? grpc(14, 'unavailable') : undefined), started)).rejects.toThrow('refused');
    expect(started).toHaveLength(3);
  });
});

describe('draining a runner of a set', () => {
  const drain = async (update: unknown, signal?: unknown): Promise<{ gone: string[]; signalled: unknown[] }> => {
    const signalled: unknown[] = [];
    const fail = (error: unknown): void => {
      if (error !== undefined) throw error;
    };
    const handle = {
      executeUpdate: async () => fail(update),
      signal: async (_definition: unknown, body: unknown) => {
        signalled.push(body);
        fail(signal);
      },
    };
    const { gone } = await withClient({ getHandle: () => handle }, async () => await drainRunners({ runners: [{ workflowId: 'runner-linux-a', why: 'idle' }] }));
    return { gone, signalled };
  };
  const ended = new WorkflowNotFoundError('ended', 'runner-linux-a', undefined);
  const unanswered = new WorkflowUpdateRPCTimeoutOrCancelledError('no worker');

  test.each([
    ['it takes the update', undefined, undefined, { gone: [], signalled: [] }],
    ['it is being torn down, and refuses', new WorkflowUpdateFailedError('refused', ApplicationFailure.nonRetryable('the runner is TearingDown already', RUNNER_LEAVES_ALREADY)), undefined, { gone: [], signalled: [] }],
    ['the SDK refuses, because the runner has no handler yet: a signal waits for one', new WorkflowUpdateFailedError('refused', ApplicationFailure.nonRetryable('No registered handler for update: drain')), undefined, { gone: [], signalled: [{ mode: 'drain', reason: 'idle' }] }],
    ['it has ended', ended, undefined, { gone: ['runner-linux-a'], signalled: [] }],
    ['no worker answers: a signal waits for one', unanswered, undefined, { gone: [], signalled: [{ mode: 'drain', reason: 'idle' }] }],
    ['no worker answers, and it ends meanwhile', unanswered, ended, { gone: ['runner-linux-a'], signalled: [{ mode: 'drain', reason: 'idle' }] }],
  ])('%s', async (_what, update, signal, expected) => {
    expect(await drain(update, signal)).toEqual(expected);
  });
});
