import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from '@jest/globals';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { JobEventBatcher, type BatchLimits } from '../../../worker/webhook/jobEventBatcher.ts';
import type { JobEvent } from '../../../core/contract/index.ts';
import { grpcError } from '../../support/grpcError.ts';
import { until } from '../../support/until.ts';

const event = (jobId: number, labels: string[] = []): JobEvent => ({
  action: 'queued',
  jobId: String(jobId),
  runAttempt: 1,
  repository: 'acme/app',
  labels,
  at: 1,
});
const never = new AbortController().signal;

interface Sent {
  readonly to: string;
  readonly jobs: number[];
  readonly accept: () => void;
  readonly reject: (error: Error) => void;
}

/** Signals through a client that calls `signal` for each. */
function signals(
  signal: (to: string, events: JobEvent[]) => Promise<void>,
  limits: BatchLimits,
): JobEventBatcher {
  const client = {
    withDeadline: async (_deadline: number, run: () => Promise<void>) => await run(),
    workflow: {
      getHandle: (to: string) => ({
        signal: async (_signal: unknown, { events }: { events: JobEvent[] }) =>
          await signal(to, events),
      }),
    },
  };
  return new JobEventBatcher(() => client as unknown as Client, limits);
}

function gated(limits: BatchLimits = {}): { batches: JobEventBatcher; sent: Sent[] } {
  const sent: Sent[] = [];
  const batches = signals(
    async (to, events) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      sent.push({
        to,
        jobs: events.map(({ jobId }) => Number(jobId)),
        accept: resolve,
        reject,
      });
      await promise;
    },
    { pauseMs: 0, ...limits },
  );
  return { batches, sent };
}
const isPending = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([
    promise,
    new Promise((resolve) => setImmediate(() => resolve(isPending))),
  ])) === isPending;

describe('a set that does not respond', () => {
  test('and has nearly the maximum number of signals: events are rejected, and retried', async () => {
    let historyLength = 9_000;
    const sent: string[] = [];
    const client = {
      withDeadline: async (_deadline: number, run: () => Promise<void>) => await run(),
      workflow: {
        getHandle: () => ({
          describe: async () => ({ historyLength, raw: {} }),
          signal: async (_signal: unknown, { events }: { events: JobEvent[] }) =>
            void sent.push(...events.map(({ jobId }) => jobId)),
        }),
      },
    } as unknown as Client;
    const batches = new JobEventBatcher(() => client, { pauseMs: 0, retryPauseMs: 0 });
    for (let id = 1; id < 20; id++) await batches.send('set-a', event(id), never);
    await expect(batches.send('set-a', event(20), never)).rejects.toMatchObject({
      name: 'SetBacklogError',
    });
    expect(sent).toHaveLength(19);
    historyLength = 10;
    await until('the event to be sent all the same', () => sent.includes('20'));
  });
});

describe('batches of events', () => {
  test('each signal is sent in the context of its own oldest event', async () => {
    const around = new AsyncLocalStorage<string>();
    const sentIn: [number, string | undefined][] = [];
    const batches = signals(
      async (_to, events) => void sentIn.push([Number(events[0]?.jobId), around.getStore()]),
      { pauseMs: 0, maxEvents: 2 },
    );
    await Promise.all(
      [1, 2, 3, 4].map(
        async (id) =>
          await around.run(`of ${id}`, async () => await batches.send('set-a', event(id), never)),
      ),
    );
    expect(sentIn).toEqual([
      [1, 'of 1'],
      [2, 'of 2'],
      [4, 'of 4'],
    ]);
  });

  test('events that arrive during a signal are sent together in the next one; each waits for its own', async () => {
    const { batches, sent } = gated();
    const [one, two, three] = [1, 2, 3].map((id) => batches.send('set-a', event(id), never));
    expect(sent.map(({ jobs }) => jobs)).toEqual([[1]]);
    sent[0]?.accept();
    await one;
    await until('the next signal', () => sent.length === 2);
    expect(await isPending(two as Promise<boolean>)).toBe(true);
    expect(sent.map(({ jobs }) => jobs)).toEqual([[1], [2, 3]]);
    sent[1]?.accept();
    await Promise.all([two, three]);
    const four = batches.send('set-a', event(4), never);
    await until('the next signal', () => sent.length === 3);
    expect(sent.map(({ jobs }) => jobs)).toEqual([[1], [2, 3], [4]]);
    sent[2]?.accept();
    await four;
  });

  test('sets do not wait for each other', () => {
    const { batches, sent } = gated();
    void batches.send('set-a', event(1), never);
    void batches.send('set-b', event(2), never);
    expect(sent.map(({ to }) => to)).toEqual(['set-a', 'set-b']);
  });

  test('a rejected signal fails exactly its own events', async () => {
    const { batches, sent } = gated();
    const one = batches.send('set-a', event(1), never);
    const two = batches.send('set-a', event(2), never);
    sent[0]?.reject(grpcError(3, 'too large'));
    await expect(one).rejects.toThrow('refused');
    await until('the next signal', () => sent.length === 2);
    expect(sent[1]?.jobs).toEqual([2]);
    sent[1]?.accept();
    await two;
  });

  test('a set that has ended is distinguished from one that is unreachable', async () => {
    const { batches, sent } = gated();
    const [one, two] = [
      batches.send('set-a', event(1), never),
      batches.send('set-b', event(1), never),
    ];
    sent[0]?.reject(new WorkflowNotFoundError('no such workflow', 'set-a', undefined));
    sent[1]?.accept();
    expect(await Promise.all([one, two])).toEqual([false, true]);
  });

  test('a cancelled request fails at once; its event is still sent', async () => {
    const { batches, sent } = gated();
    const [giveUpFirst, giveUpSecond] = [new AbortController(), new AbortController()];
    const first = batches.send('set-a', event(1), giveUpFirst.signal);
    const second = batches.send('set-a', event(2), giveUpSecond.signal);
    const third = batches.send('set-a', event(3), never);
    giveUpSecond.abort(new Error('late'));
    giveUpFirst.abort(new Error('later'));
    await expect(second).rejects.toThrow('late');
    await expect(first).rejects.toThrow('later');
    sent[0]?.accept();
    await until('the next signal', () => sent.length === 2);
    expect(sent.map(({ jobs }) => jobs)).toEqual([[1], [2, 3]]);
    sent[1]?.accept();
    await third;
    await expect(
      batches.send('set-a', event(4), AbortSignal.abort(new Error('too late'))),
    ).rejects.toThrow('too late');
    expect(sent).toHaveLength(2);
  });

  describe('a set that temporarily rejects signals', () => {
    const closing = grpcError(
      8,
      'workflow operation can not be applied because workflow is closing',
    );

    async function rejectedOnce(limits: BatchLimits = {}): Promise<ReturnType<typeof gated>> {
      const gate = gated({ retryPauseMs: 0, ...limits });
      const [one, two] = [
        gate.batches.send('set-a', event(1), never),
        gate.batches.send('set-a', event(2), never),
      ];
      gate.sent[0]?.reject(closing);
      await expect(one).rejects.toBe(closing);
      await until('the next signal', () => gate.sent.length === 2);
      gate.sent[1]?.reject(closing);
      await expect(two).rejects.toBe(closing);
      return gate;
    }
    const jobsOf = (sent: readonly Sent[]): number[][] => sent.map(({ jobs }) => jobs);

    test('gets the rejected events as soon as it accepts signals, with those that arrived in between', async () => {
      const { batches, sent } = await rejectedOnce();
      await until('the next signal', () => sent.length === 3);
      const three = batches.send('set-a', event(3), never);
      sent[2]?.reject(closing);
      await until('the next signal', () => sent.length === 4);
      sent[3]?.accept();
      expect(await three).toBe(true);
      expect(jobsOf(sent)).toEqual([[1], [1, 2], [1, 2], [1, 2, 3]]);
      const four = batches.send('set-a', event(4), never);
      await until('the next signal', () => sent.length === 5);
      sent[4]?.accept();
      await four;
      expect(jobsOf(sent).at(-1)).toEqual([4]);
    });

    test('is not signaled endlessly', async () => {
      const { batches, sent } = await rejectedOnce({ backgroundRetryMs: 0 });
      const three = batches.send('set-a', event(3), never);
      await until('the next signal', () => sent.length === 3);
      sent[2]?.accept();
      await three;
      expect(jobsOf(sent)).toEqual([[1], [2], [3]]);
    });

    test('is retried only for a maximum number of events', async () => {
      const { sent } = await rejectedOnce({ maxBackgroundRetries: 1 });
      await until('the next signal', () => sent.length === 3);
      sent[2]?.accept();
      expect(jobsOf(sent)).toEqual([[1], [1, 2], [1]]);
    });

    test('gets no events after the shutdown', async () => {
      const { batches, sent } = await rejectedOnce();
      await until('the next signal', () => sent.length === 3);
      batches.close();
      sent[2]?.reject(closing);
      const three = batches.send('set-a', event(3), never);
      await until('the next signal', () => sent.length === 4);
      sent[3]?.accept();
      await three;
      expect(jobsOf(sent)).toEqual([[1], [1, 2], [1, 2], [3]]);
    });
  });

  test('after a signal there is a pause, in which events are collected', async () => {
    const sizes: number[] = [];
    const batches = signals(async (_to, events) => void sizes.push(events.length), { pauseMs: 40 });
    await batches.send('set-a', event(1), never);
    // Without the pause the second would be sent before the third arrives.
    await Promise.all([2, 3].map(async (id) => await batches.send('set-a', event(id), never)));
    expect(sizes).toEqual([1, 2]);
  });

  test('the size of a signal is limited', async () => {
    const { batches, sent } = gated({ maxEvents: 3, maxSize: 1_000 });
    const labels = ['x'.repeat(400)];
    const all = [
      event(1),
      event(2),
      event(3),
      event(4),
      event(5),
      event(6, labels),
      event(7, labels),
      event(8, ['x'.repeat(2_000)]),
    ].map((one) => batches.send('set-a', one, never));
    for (let next = 0; next < 5; next++) {
      await until('the next signal', () => sent.length === next + 1);
      sent[next]?.accept();
    }
    await Promise.all(all);
    expect(sent.map(({ jobs }) => jobs)).toEqual([[1], [2, 3, 4], [5, 6], [7], [8]]);
  });
});
