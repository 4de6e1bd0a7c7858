/** What is no news of jobs stops no set. */
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
/** What JSON can say and no text is. */
const NO_TEXT = { toString: null };
/** Numbers that no time in ISO 8601 has, or that no CI server and no worker would send. */
const NO_TIMES = [-9e15, -1, 253_402_300_800_000, 9e15, 1e300];

test('events are taken as they are, and when they were sent', () => {
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
])('%j tells of no job, at no time', (body) => {
  expect(parseJobEvents(body)).toEqual({ events: [] });
});

test.each<[string, unknown]>([
  ['none at all', null],
  ['of no known kind', { ...event, action: 'deleted' }],
  ['of no job', { ...event, jobId: NO_TEXT }],
  ['of a job whose key would name another', { ...event, jobId: '1/2' }],
  ['of half a run', { ...event, runAttempt: 1.5 }],
  ['of no repository', { ...event, repository: 7 }],
  ['at no time', { ...event, at: '5' }],
  ...NO_TIMES.map((at): [string, unknown] => [`at ${at}`, { ...event, at }]),
  ['of a runner without a name', { ...event, runnerName: 7 }],
  ['passed by nobody', { ...event, reroutedBy: NO_TEXT }],
  ['with a trace that is none', { ...event, traceparent: {} }],
  ['that would fill what is carried on', { ...event, repository: 'x'.repeat(1_001) }],
])('an event %s is left out, and no other', (_what, bad) => {
  expect(parseJobEvents({ events: [bad, event] }).events).toEqual([event]);
});

test.each([7.5, NO_TEXT, '1/2', '', 'x'.repeat(101)])(
  'the workflow run %j is left out, and the job counts',
  (runId) => {
    expect(parseJobEvents({ events: [{ ...event, runId }] }).events).toEqual([event]);
    const seen = { checkedAt: 5, complete: true, absent: [], endedSets: [] };
    expect(parseQueueCheckResult({ ...seen, jobs: [{ ...job, runId }] })).toMatchObject({
      complete: true,
      jobs: [job],
    });
  },
);

test('an ID that is a number is taken as its digits', () => {
  expect(parseJobEvents({ events: [{ ...event, jobId: 1 }] }).events).toEqual([event]);
  const seen = { checkedAt: 5, complete: true, absent: [], endedSets: [] };
  expect(parseQueueCheckResult({ ...seen, jobs: [{ ...job, id: 1 }] })).toEqual({
    ...seen,
    jobs: [job],
  });
});

test('a look is taken as it is; one of which a job cannot be read is not complete', () => {
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
])('%j is no look', (body) => {
  expect(parseQueueCheckResult(body)).toBeUndefined();
});
