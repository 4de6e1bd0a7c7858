/** Changes of a pod between idle and busy of which its workflow is notified. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { WaitCompleter } from '../../../activities/ports/waitCompleter.ts';
import { RetryQueue } from '../../../activities/watcher/retryQueue.ts';
import {
  PodStateNotifier,
  type NotificationLimits,
} from '../../../activities/watcher/podStateNotifier.ts';
import type { PodStateEvent } from '../../../core/contract/index.ts';
import type { PodView } from '../../../core/domain/pod.ts';

beforeEach(() => void jest.useFakeTimers({ now: Date.parse('2026-03-01T12:00:00Z') }));
afterEach(() => void jest.useRealTimers());

const POD: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: true,
  createdAt: '',
  ended: false,
  deleted: false,
  terminating: false,
};

function world(limits?: Partial<NotificationLimits>, delayMs = 0) {
  const sent: string[] = [];
  const forMs: unknown[] = [];
  const signalPodState = async (_workflowId: string, event: PodStateEvent): Promise<void> => {
    sent.push(event.newJob === true ? `${event.state} again` : event.state);
    forMs.push(event.durationMs);
  };
  const queue = new RetryQueue(64, (error) => {
    throw error;
  });
  return {
    sent,
    forMs,
    states: new PodStateNotifier(
      queue,
      { signalPodState } as unknown as WaitCompleter,
      delayMs,
      limits,
    ),
  };
}

test('a pod that flaps for an hour sends a burst, then one signal per minute, and finally its state', async () => {
  const { states, sent } = world();
  for (let second = 0; second < 3_600; second++) {
    states.notify(POD, second % 2 === 0 ? 'busy' : 'idle');
    await jest.advanceTimersByTimeAsync(1_000);
  }
  expect(sent.length).toBeGreaterThan(60);
  expect(sent.length).toBeLessThanOrEqual(60 + 60);
  states.notify(POD, 'busy');
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent.at(-1)).toMatch(/^busy/);
});

test('a pod without changes for an hour may send a burst again', async () => {
  const { states, sent } = world({ burst: 2, everyMs: 60_000 });
  const flap = async (pod: PodView): Promise<number> => {
    sent.length = 0;
    for (const state of ['busy', 'idle', 'busy', 'idle'] as const) states.notify(pod, state);
    await jest.advanceTimersByTimeAsync(0);
    return sent.length;
  };
  expect([await flap(POD), await flap(POD), await flap({ ...POD, name: 'q', uid: 'v' })]).toEqual([
    2, 0, 2,
  ]);
  await jest.advanceTimersByTimeAsync(3_600_000);
  expect(await flap(POD)).toBe(2);
  states.stop();
});

test('a job between two announcements is announced as a new one', async () => {
  const { states, sent } = world({ burst: 1, everyMs: 60_000 });
  for (const state of ['busy', 'idle', 'busy'] as const) states.notify(POD, state);
  await jest.advanceTimersByTimeAsync(600_000);
  for (const state of ['idle', 'busy', 'idle'] as const) states.notify(POD, state);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual(['busy', 'busy again', 'idle']);
});

test('nothing is announced for a pod that has ended, nor after the stop', async () => {
  const { states, sent } = world({ burst: 1, everyMs: 60_000 });
  states.notify(POD, 'busy');
  states.notify(POD, 'idle');
  states.forget(POD);
  states.notify(POD, 'busy');
  states.notify(POD, 'idle');
  states.stop();
  await jest.advanceTimersByTimeAsync(600_000);
  expect(sent).toEqual(['busy', 'busy']);
});

test('a short job of a runner for one job is not announced; a long one is, with its duration', async () => {
  const { states, sent, forMs } = world(undefined, 5_000);
  states.notify(POD, 'busy');
  await jest.advanceTimersByTimeAsync(4_999);
  states.forget(POD);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual([]);
  states.notify({ ...POD, uid: 'v' }, 'busy');
  await jest.advanceTimersByTimeAsync(5_000);
  expect([sent, forMs]).toEqual([['busy'], [5_000]]);
});

test('busy is not sent once the event of the job has reached the workflow, and a later idle is', async () => {
  const { states, sent } = world(undefined, 15_000);
  states.notify(POD, 'busy');
  states.dropDelayedBusy('another');
  states.dropDelayedBusy(POD.workflowId);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual([]);
  states.notify(POD, 'idle');
  await jest.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(['idle']);
  expect(states.forget(POD)).toBe(false);
});

test('a job event does not drop the busy of a static runner, which may be about its next job', async () => {
  const { states, sent } = world({ burst: 1, everyMs: 60_000 }, 15_000);
  const pod: PodView = { ...POD, reusable: true };
  for (const state of ['busy', 'idle', 'busy'] as const) states.notify(pod, state);
  states.dropDelayedBusy(pod.workflowId);
  await jest.advanceTimersByTimeAsync(600_000);
  expect(sent).toEqual(['busy', 'busy again']);
});

test('late changes of a pod that has ended do not affect the next pod of its workflow', async () => {
  const { states, sent } = world(undefined, 15_000);
  states.notify({ ...POD, uid: 'next' }, 'busy');
  states.forget(POD);
  states.dropDelayedBusy(POD.workflowId);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual([]);
});

test('a busy that was sent is not affected by a job event that comes later', async () => {
  const { states, sent } = world(undefined, 15_000);
  states.notify(POD, 'busy');
  await jest.advanceTimersByTimeAsync(15_000);
  states.dropDelayedBusy(POD.workflowId);
  states.notify(POD, 'idle');
  await jest.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(['busy', 'idle']);
});

test('a state that was busy for a moment is not announced', async () => {
  const { states, sent } = world(undefined, 5_000);
  states.notify(POD, 'busy');
  await jest.advanceTimersByTimeAsync(1_000);
  states.notify(POD, 'idle');
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual([]);
});

test.each<[string, Partial<PodView>]>([
  ['a runner for many jobs', { reusable: true }],
  ['a runner whose set waits for the event', { notifyBusy: true }],
])('%s is announced as busy immediately', async (_what, more) => {
  const { states, sent, forMs } = world(undefined, 5_000);
  states.notify({ ...POD, ...more }, 'busy');
  await jest.advanceTimersByTimeAsync(0);
  expect([sent, forMs]).toEqual([['busy'], [undefined]]);
});

test('a delayed busy is sent at once if the limit of tracked pods is reached', async () => {
  const { states, sent } = world({ maxPods: 1 }, 15_000);
  states.notify(POD, 'busy');
  states.notify({ ...POD, uid: 'v', workflowId: 'x' }, 'busy');
  await jest.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(['busy']);
  states.dropDelayedBusy(POD.workflowId);
  await jest.advanceTimersByTimeAsync(15_000);
  expect(sent).toEqual(['busy', 'busy']);
});
