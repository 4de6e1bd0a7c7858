/** Invalid events of jobs do not stop a set. */
import { expect, test } from '@jest/globals';
import type { JobEvent } from '../../../core/contract/index.ts';
import { parseJobEvents, parseQueueCheckResult } from '../../../workflows/runnerSet/jobSignals.ts';

const event: JobEvent = {
  action: 'queued',
  jobId: '1',
  runAttempt: 1,
  repository: 'acme/app',
  labels: ['linux'],
  at: 5,
};
const job = {
  id: '1',
  runAttempt: 1,
  repository: 'acme/app',
  labels: ['linux'],
  status: 'queued',
  queuedAt: 5,
};
/** A JSON value that is not a string. */
const NO_TEXT = { toString: null };
/** Numbers outside the range of ISO 8601 times, or that no CI server and no worker would send. */
const NO_TIMES = [-9e15, -1, 253_402_300_800_000, 9e15, 1e300];

test('valid events are accepted unchanged, with the time of sending', () => {
  const whole = {
    ...event,
    action: 'completed',
    runId: '9',
    runnerName: 'r',
    conclusion: 'success',
    reroutedBy: 'set-a',
    traceparent: 't',
  };
  expect(parseJobEvents({ events: [event, whole], at: 7 })).toEqual({
    events: [event, whole],
    at: 7,
  });
});

test.each([
  undefined,
  null,
  7,
  'x',
  [],
  {},
  { events: null },
  { events: { length: 3 } },
  { events: [], at: NO_TEXT },
  { events: [], at: '7' },
  ...NO_TIMES.map((at) => ({ events: [], at })),
])('%j has no event and no time', (body) => {
  expect(parseJobEvents(body)).toEqual({ events: [] });
});

test.each<[string, unknown]>([
  ['that is null', null],
  ['of an unknown kind', { ...event, action: 'deleted' }],
  ['without a job', { ...event, jobId: NO_TEXT }],
  ['of a job with the key of another one', { ...event, jobId: '1/2' }],
  ['with a fractional run attempt', { ...event, runAttempt: 1.5 }],
  ['without a repository', { ...event, repository: 7 }],
  ['without a time', { ...event, at: '5' }],
  ...NO_TIMES.map((at): [string, unknown] => [`at ${at}`, { ...event, at }]),
  ['of a runner without a name', { ...event, runnerName: 7 }],
  ['rerouted by an invalid set', { ...event, reroutedBy: NO_TEXT }],
  ['with an invalid trace', { ...event, traceparent: {} }],
  ['that is too long to be carried over', { ...event, repository: 'x'.repeat(1_001) }],
])('an event %s is dropped, and no other', (_what, bad) => {
  expect(parseJobEvents({ events: [bad, event] }).events).toEqual([event]);
});

test.each([7.5, NO_TEXT, '1/2', '', 'x'.repeat(101)])(
  'the workflow run %j is dropped, and the job is accepted',
  (runId) => {
    expect(parseJobEvents({ events: [{ ...event, runId }] }).events).toEqual([event]);
    const seen = { checkedAt: 5, complete: true, absent: [], endedSets: [] };
    expect(parseQueueCheckResult({ ...seen, jobs: [{ ...job, runId }] })).toMatchObject({
      complete: true,
      jobs: [job],
    });
  },
);

test('a numeric ID is converted to a string', () => {
  expect(parseJobEvents({ events: [{ ...event, jobId: 1 }] }).events).toEqual([event]);
  const seen = { checkedAt: 5, complete: true, absent: [], endedSets: [] };
  expect(parseQueueCheckResult({ ...seen, jobs: [{ ...job, id: 1 }] })).toEqual({
    ...seen,
    jobs: [job],
  });
});

test('a valid queue check is accepted unchanged; one with an invalid job is incomplete', () => {
  const seen = {
    checkedAt: 5,
    jobs: [job, { ...job, status: 'in_progress', startedAt: 6, runnerName: 'r' }],
    complete: true,
    absent: ['1/1'],
    endedSets: ['set-a'],
  };
  expect(parseQueueCheckResult(seen)).toEqual(seen);
  for (const bad of [
    null,
    { ...job, id: NO_TEXT },
    { ...job, status: 'done' },
    { ...job, labels: [7] },
    { ...job, queuedAt: null },
    { ...job, startedAt: 'x' },
    ...NO_TIMES.flatMap((at) => [
      { ...job, queuedAt: at },
      { ...job, startedAt: at },
    ]),
    { ...job, runnerName: 7 },
  ]) {
    expect(parseQueueCheckResult({ ...seen, jobs: [job, bad] })).toEqual({
      ...seen,
      jobs: [job],
      complete: false,
    });
  }
  expect(parseQueueCheckResult({ ...seen, absent: null, endedSets: [7, 'set-b'] })).toEqual({
    ...seen,
    absent: [],
    endedSets: ['set-b'],
  });
});

test.each([
  undefined,
  null,
  'x',
  {},
  { checkedAt: 5 },
  { checkedAt: NO_TEXT, jobs: [] },
  { checkedAt: 5, jobs: {} },
  ...NO_TIMES.map((checkedAt) => ({ checkedAt, jobs: [] })),
])('%j is not a queue check', (body) => {
  expect(parseQueueCheckResult(body)).toBeUndefined();
});
