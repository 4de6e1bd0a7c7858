import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  DEFERRAL_LIMITS,
  DeferredCompletions,
  permittedDelayMs,
  type DeferredCompletion,
} from '../../../activities/watcher/deferredCompletions.ts';
import { HELD_MS } from '../../../worker/webhook/delayedRunnerSignals.ts';
import type { PodView } from '../../../core/domain/pod.ts';

const POD: PodView = {
  name: 'runner-1-ab',
  uid: 'u1',
  workflowId: 'runner-1',
  scheduled: false,
  createdAt: '2026-01-01T00:00:00Z',
  ended: false,
  deleted: false,
  terminating: false,
  online: false,
  busy: false,
};
const SCHEDULED = { ...POD, scheduled: true };
const ONLINE = { ...SCHEDULED, startedAt: '2026-01-01T00:00:01Z', online: true };
const TASK = { taskToken: new Uint8Array([1]), activityId: '1', workflowId: POD.workflowId };
const seen = (pod: PodView | undefined): object => ({ seen: pod ?? 'nothing' });
const answer = (pod?: PodView): DeferredCompletion => ({
  activity: TASK,
  podName: POD.name,
  result: seen(pod),
});

let waits: DeferredCompletions;
let answers: DeferredCompletion[];

beforeEach(() => {
  jest.useFakeTimers();
  answers = [];
  waits = new DeferredCompletions();
  waits.open((given) => answers.push(given));
});
afterEach(() => void jest.useRealTimers());

const hold = (withinMs = 5_000): boolean =>
  waits.defer(waits.addWaiter(POD, 'online'), TASK, seen, withinMs);

test('completes when the condition is met, with the current pod, and only once', () => {
  expect(hold()).toBe(true);
  expect(waits.changed(SCHEDULED, 'online')).toBe(false);
  expect(waits.changed(ONLINE, 'online')).toBe(true);
  expect(waits.changed({ ...ONLINE, busy: true }, 'online')).toBe(false);
  jest.advanceTimersByTime(10_000);
  expect(answers).toEqual([answer(ONLINE)]);
});

test('completes after its time with the last view', () => {
  hold();
  waits.changed(SCHEDULED, 'online');
  jest.advanceTimersByTime(4_999);
  expect(answers).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(answers).toEqual([answer(SCHEDULED)]);
  expect(waits.changed(ONLINE, 'online')).toBe(false);
});

test.each([
  ['ended', { ended: true }],
  ['deleted', { deleted: true, ended: true }],
  [
    'cannot start',
    { problem: { kind: 'invalid_image' as const, message: 'no such name', since: POD.createdAt } },
  ],
])('a pod that has %s will never be online: completed immediately', (_what, fields) => {
  hold();
  expect(waits.changed({ ...POD, ...fields }, 'online')).toBe(true);
  expect(answers).toHaveLength(1);
});

test('nothing completes before the activity has done its work: what was observed in the meantime is its result', () => {
  const waiter = waits.addWaiter(POD, 'deleted');
  expect(waits.changed({ ...POD, deleted: true, ended: true }, 'deleted')).toBe(false);
  expect(waits.defer(waiter, TASK, seen, 5_000)).toBe(false);
  expect(waiter.seen).toMatchObject({ deleted: true });
  jest.advanceTimersByTime(10_000);
  expect(answers).toEqual([]);
});

test('conditions of one pod are independent', () => {
  waits.defer(waits.addWaiter(POD, 'deleted'), TASK, seen, 5_000);
  expect(waits.changed(ONLINE, 'online')).toBe(false);
  expect(waits.changed({ ...ONLINE, ended: true }, 'deleted')).toBe(false);
  expect(answers).toEqual([]);
});

test('another pod of the same name completes nothing', () => {
  hold();
  expect(waits.changed({ ...ONLINE, uid: 'u2' }, 'online')).toBe(false);
  expect(answers).toEqual([]);
});

test('completes immediately without a time, before the start, and after the stop', () => {
  expect(hold(0)).toBe(false);
  const unopened = new DeferredCompletions();
  expect(unopened.defer(unopened.addWaiter(POD, 'online'), TASK, seen, 5_000)).toBe(false);
  hold();
  waits.close();
  expect(answers).toEqual([answer()]);
  expect(hold()).toBe(false);
});

describe('waiting in the activity', () => {
  const wait = async (withinMs = 5_000) =>
    await waits.until(waits.addWaiter(POD, 'deleted'), withinMs);
  const GONE = { ...ONLINE, ended: true, deleted: true };

  test('until the condition is met', async () => {
    const waiting = wait();
    expect(waits.changed(ONLINE, 'deleted')).toBe(false);
    expect(waits.changed(GONE, 'deleted')).toBe(true);
    expect(await waiting).toEqual(GONE);
    expect(answers).toEqual([]);
  });

  test('until the time is over or the watch ends: with the last view', async () => {
    const [timed, closed] = [
      wait(1_000),
      waits.until(waits.addWaiter({ ...POD, name: 'runner-2-ab' }, 'deleted'), 5_000),
    ];
    waits.changed(ONLINE, 'deleted');
    jest.advanceTimersByTime(1_000);
    expect(await timed).toEqual(ONLINE);
    waits.close();
    expect(await closed).toBeUndefined();
  });

  test('not if nothing reports changes, or the condition is already met', async () => {
    const waiter = waits.addWaiter(POD, 'deleted');
    waits.changed(GONE, 'deleted');
    expect(await waits.until(waiter, 5_000)).toEqual(GONE);
    waits.close();
    expect(await wait()).toBeUndefined();
  });
});

describe('the time that an activity may defer its completion', () => {
  const NOW = 100_000;
  const STARTED = {
    scheduledTimestampMs: NOW,
    scheduleToCloseTimeoutMs: 0,
    currentAttemptScheduledTimestampMs: NOW,
  };

  test.each([
    ['no deadline', {}, 12_000],
    ['a deadline beyond twice the time', { scheduleToCloseTimeoutMs: 24_001 }, 12_000],
    ['a deadline within twice the time', { scheduleToCloseTimeoutMs: 24_000 }, 0],
    ['a heartbeat timeout', { heartbeatTimeoutMs: 20_000 }, 12_000],
    [
      'a heartbeat timeout, after 6 s of work',
      { heartbeatTimeoutMs: 20_000, currentAttemptScheduledTimestampMs: NOW - 6_000 },
      11_000,
    ],
    [
      'a heartbeat timeout that is near',
      { heartbeatTimeoutMs: 20_000, currentAttemptScheduledTimestampMs: NOW - 18_000 },
      0,
    ],
  ])('%s', (_what, info, expected) => {
    expect(permittedDelayMs({ ...STARTED, ...info }, 12_000, NOW)).toBe(expected);
  });

  test('the notification of a busy runner waits for longer than the event of its job', () => {
    expect(DEFERRAL_LIMITS.busyMs).toBeGreaterThanOrEqual(2 * HELD_MS);
  });
});
