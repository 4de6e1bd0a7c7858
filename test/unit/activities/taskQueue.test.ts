import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { RetryQueue } from '../../../activities/watcher/retryQueue.ts';

describe('TaskQueue', () => {
  let failures: string[];
  const queueOf = (limit: number) =>
    new RetryQueue(limit, (error, what) => failures.push(`${what}: ${String(error)}`));

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick'] });
    failures = [];
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('runs a limited number concurrently, in order', async () => {
    const queue = queueOf(2);
    const running = new Set<string>();
    const started: string[] = [];
    const release = new Map<string, () => void>();
    for (const what of ['a', 'b', 'c', 'd']) {
      void queue.add(what, async () => {
        started.push(what);
        running.add(what);
        await new Promise<void>((resolve) => release.set(what, resolve));
        running.delete(what);
      });
    }
    await jest.advanceTimersByTimeAsync(0);
    expect([...running]).toEqual(['a', 'b']);
    release.get('b')?.();
    await jest.advanceTimersByTimeAsync(0);
    expect([...running]).toEqual(['a', 'c']);
    release.get('a')?.();
    release.get('c')?.();
    await jest.advanceTimersByTimeAsync(0);
    release.get('d')?.();
    await queue.idle();
    expect(started).toEqual(['a', 'b', 'c', 'd']);
    expect(failures).toEqual([]);
  });

  test('retries a failing task with growing delays, and keeps its slot', async () => {
    const queue = queueOf(1);
    const at: number[] = [];
    const begin = Date.now();
    void queue.add('flaky', async () => {
      at.push(Date.now() - begin);
      if (at.length < 5) throw new Error('not yet');
    });
    let next = false;
    void queue.add('next', async () => {
      next = true;
    });
    await jest.advanceTimersByTimeAsync(8_099);
    expect({ at, next }).toEqual({ at: [0, 100, 600, 3_100], next: false });
    await jest.advanceTimersByTimeAsync(1);
    await queue.idle();
    expect({ at, next, failures }).toEqual({
      at: [0, 100, 600, 3_100, 8_100],
      next: true,
      failures: [],
    });
  });

  test('reports a task that fails five times, once, and continues', async () => {
    const queue = queueOf(1);
    let tries = 0;
    void queue.add('broken', async () => {
      tries++;
      throw new Error('broken for good');
    });
    void queue.add('next', async () => undefined);
    const idle = queue.idle();
    await jest.runAllTimersAsync();
    await idle;
    expect({ tries, failures }).toEqual({ tries: 5, failures: ['broken: Error: broken for good'] });
  });

  test('handles a task that throws synchronously as a failure', async () => {
    const queue = queueOf(1);
    void queue.add('hasty', () => {
      throw new Error('at once');
    });
    await jest.runAllTimersAsync();
    await queue.idle();
    expect(failures).toEqual(['hasty: Error: at once']);
  });

  test('is idle immediately if nothing was added', async () => {
    await expect(queueOf(1).idle()).resolves.toBeUndefined();
  });

  test('stopped: waiting tasks are dropped, running ones awaited, failed ones not retried, and none accepted', async () => {
    const queue = queueOf(1);
    const ran: string[] = [];
    let fail: () => void = () => undefined;
    void queue.add('running', async () => {
      ran.push('running');
      await new Promise<void>((_, reject) => (fail = () => reject(new Error('late'))));
    });
    void queue.add('waiting', async () => void ran.push('waiting'));
    let stopped = false;
    const stop = queue.stop().then(() => (stopped = true));
    void queue.add('new', async () => void ran.push('new'));
    await jest.advanceTimersByTimeAsync(0);
    expect(stopped).toBe(false);
    fail();
    await stop;
    expect({ ran, failures }).toEqual({ ran: ['running'], failures: ['running: Error: late'] });
    expect(jest.getTimerCount()).toBe(0);
  });
});
