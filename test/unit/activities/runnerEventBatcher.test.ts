/** Batches of events that runners send to their sets. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { RunnerEventBatcher } from '../../../activities/runnerSet/runnerEventBatcher.ts';
import type { SetNotification } from '../../../core/activities/index.ts';
import type { RunnerEvent, TimedRunnerEvent } from '../../../core/contract/index.ts';
import { grpcError } from '../../support/grpcError.ts';

const notification = (
  kind: 'ended' | 'online' | 'busy',
  workflowId: string,
  set = 'linux',
): SetNotification => ({
  set,
  event: {
    kind,
    workflowId,
    runnerName: workflowId,
    ...(kind === 'ended' ? { outcome: 'succeeded', wasOnline: true, ranJob: true } : {}),
  } as RunnerEvent,
});

beforeEach(() => void jest.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void jest.useRealTimers());

/** The signal of the running activity, with which the SDK cancels its requests. */
const CANCELLED_WITH = new AsyncLocalStorage<string>();

/** Sends events in an activity whose client calls `signal` for each signal. */
function batching(
  signal: (to: string, events: TimedRunnerEvent[]) => Promise<void> = async () => undefined,
) {
  const sent: string[] = [];
  let activities = 0;
  const batches = new RunnerEventBatcher({ pauseMs: 250, lazyMs: 500 });
  const workflow = {
    getHandle: (to: string) => ({
      signal: async (
        _signal: unknown,
        { events }: { events: TimedRunnerEvent[] },
      ): Promise<void> => {
        expect(CANCELLED_WITH.getStore()).toBeUndefined();
        sent.push(
          `${to} ${Date.now() - 1_000_000}: ${events.map(({ kind, workflowId, at }) => `${kind} ${workflowId} ${at - 1_000_000}`).join(', ')}`,
        );
        await signal(to, events);
      },
    }),
  };
  const client = {
    workflow,
    withDeadline: async (_deadline: number, run: () => unknown) => await run(),
    withAbortSignal: async (_signal: AbortSignal, run: () => unknown) =>
      await CANCELLED_WITH.run(`activity ${++activities}`, run),
  } as unknown as Client;
  const environment = new MockActivityEnvironment(
    {},
    { client, logger: new DefaultLogger('ERROR', () => undefined) },
  );
  return {
    sent,
    notify: async (one: SetNotification): Promise<void> =>
      await environment.run(async () => await batches.notify(one)),
  };
}

describe('a batch', () => {
  test('an end is sent immediately, and later events together', async () => {
    const { sent, notify } = batching();
    await notify(notification('ended', 'a'));
    const others = [
      notify(notification('ended', 'b')),
      notify(notification('online', 'c')),
      notify(notification('busy', 'd')),
    ];
    await jest.advanceTimersByTimeAsync(249);
    expect(sent).toEqual(['set-linux 0: ended a 0']);
    await jest.advanceTimersByTimeAsync(1);
    await Promise.all(others);
    expect(sent.slice(1)).toEqual(['set-linux 250: ended b 0, online c 0, busy d 0']);
  });

  test('an online event waits for other events for a limited time', async () => {
    const { sent, notify } = batching();
    const first = [notify(notification('online', 'a')), notify(notification('online', 'b'))];
    await jest.advanceTimersByTimeAsync(500);
    await Promise.all(first);
    const second = notify(notification('online', 'c'));
    await jest.advanceTimersByTimeAsync(100);
    await Promise.all([second, notify(notification('ended', 'a'))]);
    expect(sent).toEqual([
      'set-linux 500: online a 0, online b 0',
      'set-linux 600: online c 500, ended a 600',
    ]);
  });

  test('a deferrable end waits with others until a non-deferrable event arrives', async () => {
    const { sent, notify } = batching();
    const late = [
      notify({ ...notification('ended', 'a'), mayWait: true }),
      notify({ ...notification('ended', 'b'), mayWait: true }),
    ];
    await jest.advanceTimersByTimeAsync(400);
    await Promise.all([...late, notify(notification('ended', 'c'))]);
    expect(sent).toEqual(['set-linux 400: ended a 0, ended b 0, ended c 400']);
  });

  test('too many deferrable events do not wait: each takes a slot of the worker', async () => {
    const { sent, notify } = batching();
    await Promise.all(
      Array.from(
        { length: 20 },
        async (_, index) => await notify(notification('online', `r${index}`)),
      ),
    );
    expect(sent).toHaveLength(1);
  });

  test('each set has a separate batch', async () => {
    const { sent, notify } = batching();
    await Promise.all([
      notify(notification('ended', 'a')),
      notify(notification('ended', 'b', 'arm')),
    ]);
    expect(sent).toEqual(['set-linux 0: ended a 0', 'set-arm 0: ended b 0']);
  });

  test('no signal is longer than Temporal accepts', async () => {
    const { sent, notify } = batching();
    const all = Promise.all(
      Array.from(
        { length: 450 },
        async (_, index) => await notify(notification('ended', `r${index}`)),
      ),
    );
    await jest.advanceTimersByTimeAsync(2_000);
    await all;
    expect(sent.map((signal) => signal.split(',').length)).toEqual([1, 200, 200, 49]);
  });
});

describe('events that are not delivered', () => {
  test('an ended set is not a failure', async () => {
    const { notify } = batching(
      async () => await Promise.reject(new WorkflowNotFoundError('gone', 'set-linux', undefined)),
    );
    await expect(notify(notification('ended', 'a'))).resolves.toBeUndefined();
  });

  test('an unreachable Temporal is a failure, and the sender retries', async () => {
    let away = true;
    const { sent, notify } = batching(async () =>
      away ? await Promise.reject(grpcError(14)) : undefined,
    );
    await expect(notify(notification('ended', 'a'))).rejects.toThrow('refused');
    away = false;
    const again = notify(notification('ended', 'a'));
    await jest.advanceTimersByTimeAsync(250);
    await again;
    expect(sent).toHaveLength(2);
  });

  test('a sender that waited too long retries: its event is not sent twice, nor before newer ones', async () => {
    let answers = (): void => undefined;
    const { sent, notify } = batching(
      async () =>
        await (sent.length === 1 ? new Promise<void>((resolve) => (answers = resolve)) : undefined),
    );
    const first = notify(notification('ended', 'a'));
    const late = notify(notification('ended', 'b')).catch(String);
    await jest.advanceTimersByTimeAsync(10_001);
    const again = notify(notification('ended', 'b'));
    answers();
    await jest.advanceTimersByTimeAsync(1_000);
    await Promise.all([first, again]);
    expect(await late).toContain('in time');
    expect(sent.slice(1)).toEqual([expect.stringMatching(/: ended b 10001$/)]);
  });

  test('an event that Temporal rejects permanently does not block others', async () => {
    const { sent, notify } = batching(async (_to, events) =>
      events.some(({ workflowId }) => workflowId === 'bad')
        ? await Promise.reject(grpcError(3))
        : undefined,
    );
    await notify(notification('ended', 'a'));
    const others = Promise.all([
      notify(notification('ended', 'b')),
      notify(notification('ended', 'bad')),
      notify(notification('ended', 'c')),
    ]);
    await jest.advanceTimersByTimeAsync(250);
    await others;
    expect(sent.slice(2)).toEqual([
      'set-linux 250: ended b 0',
      'set-linux 250: ended bad 0',
      'set-linux 250: ended c 0',
    ]);
  });
});
