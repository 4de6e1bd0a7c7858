/** The events that the runner of a set gets about its job, and when. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { RunnerJobEvent } from '../../../core/contract/index.ts';
import { DelayedRunnerSignals } from '../../../worker/webhook/delayedRunnerSignals.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const event = (action: RunnerJobEvent['action'], jobId = 1): RunnerJobEvent => ({
  action,
  jobId: String(jobId),
  runAttempt: 1,
});

function hints(failure?: Error) {
  const sent: string[] = [];
  const failed: unknown[] = [];
  const tell = async (name: string, { action, jobId }: RunnerJobEvent): Promise<boolean> => {
    sent.push(`${name} ${action} ${jobId}`);
    return failure === undefined ? true : await Promise.reject(failure);
  };
  return {
    sent,
    failed,
    hints: new DelayedRunnerSignals(tell, (error) => failed.push(error), 5_000),
  };
}

test('a running job is reported after a while, and its end later', async () => {
  const { sent, hints: later } = hints();
  later.schedule('a', event('in_progress'));
  await jest.advanceTimersByTimeAsync(4_999);
  expect(sent).toEqual([]);
  await jest.advanceTimersByTimeAsync(1);
  later.schedule('a', event('completed'));
  await jest.advanceTimersByTimeAsync(5_000);
  expect(sent).toEqual(['a in_progress 1', 'a completed 1']);
});

test('only the end of a short job is reported, in every order of its events', async () => {
  const { sent, hints: later } = hints();
  for (const action of ['in_progress', 'completed'] as const) later.schedule('a', event(action));
  for (const action of ['completed', 'in_progress'] as const) later.schedule('b', event(action));
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual(['a completed 1', 'b completed 1']);
});

test('each job of each runner is reported separately', async () => {
  const { sent, hints: later } = hints();
  later.schedule('a', event('completed', 1));
  later.schedule('a', event('in_progress', 2));
  later.schedule('b', event('in_progress', 2));
  await jest.advanceTimersByTimeAsync(5_000);
  expect(sent).toEqual(['a completed 1', 'a in_progress 2', 'b in_progress 2']);
});

test('at the shutdown all pending events are sent; a failure is logged, and does not block others', async () => {
  const { sent, failed, hints: later } = hints(new Error('away'));
  later.schedule('a', event('in_progress'));
  later.schedule('b', event('in_progress'));
  await later.close();
  await jest.advanceTimersByTimeAsync(60_000);
  expect(sent).toEqual(['a in_progress 1', 'b in_progress 1']);
  expect(failed).toHaveLength(2);
});
