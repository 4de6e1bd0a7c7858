import { expect, test } from '@jest/globals';
import { violationsOf } from './invariants.ts';
import { timelineOf, type Entry } from './timeline.ts';

const A = 'runner-a';
const B = 'runner-b';
const POD = { workflowId: A, pod: 'uid-1', name: 'runner-a-1', runner: 'a-1' };
const JOB = { kind: 'job', job: 1, workflowId: A } as const;
const END = { kind: 'end', workflowId: A, status: 'COMPLETED' } as const;

type ObservedEvent = Entry extends infer E ? (E extends unknown ? Omit<E, 'at'> : never) : never;

/** Returns a timeline with one event a second. */
const timeline = (...events: ObservedEvent[]): Entry[] =>
  events.map((event, index) => ({ at: index * 1_000, ...event }) as Entry);

const ran: ObservedEvent[] = [
  { kind: 'job', job: 1, step: 'queued' },
  { kind: 'pod', step: 'created', ...POD },
  { ...JOB, step: 'assigned' },
  { ...JOB, step: 'started' },
];
const done: ObservedEvent = { ...JOB, step: 'completed', conclusion: 'success' };
const failed: ObservedEvent = { ...JOB, step: 'completed', conclusion: 'failure' };
const deletion: ObservedEvent = { kind: 'deletion', workflowId: A, pod: POD.pod, graceS: 30 };
const evicted: ObservedEvent = {
  kind: 'disrupted',
  workflowId: A,
  pod: POD.pod,
  how: 'evicted',
};
const stopRequested = (
  how: 'drain' | 'stop' | 'force' | 'plain' | 'retire' | 'terminated',
): ObservedEvent => ({
  kind: 'stopRequested',
  workflowId: A,
  how,
});

test.each<[string, ObservedEvent[]]>([
  [
    'a pod that an admission policy denies',
    [
      { kind: 'fault', fault: 'pods_denied', edge: 'begins' },
      { ...END, outcome: 'errored', cause: 'pod_rejected' },
    ],
  ],
  [
    'a runner with one job, from its start to its end',
    [
      ...ran,
      done,
      deletion,
      { kind: 'pod', step: 'deleted', ...POD },
      { ...END, outcome: 'succeeded' },
    ],
  ],
  [
    'a stop of a busy runner',
    [
      ...ran,
      stopRequested('stop'),
      { ...deletion, job: 1 },
      failed,
      { ...END, outcome: 'aborted', cause: 'cancelled' },
    ],
  ],
  [
    'a cancellation of the workflow',
    [
      ...ran,
      stopRequested('plain'),
      { ...deletion, job: 1 },
      failed,
      { ...END, status: 'CANCELLED' },
    ],
  ],
  [
    'a workflow that a fault terminated, whose pod the sweep stops',
    [
      ...ran,
      stopRequested('terminated'),
      { ...deletion, job: 1 },
      failed,
      { ...END, status: 'TERMINATED' },
    ],
  ],
  [
    'a drain lets the job finish',
    [
      ...ran,
      stopRequested('drain'),
      done,
      deletion,
      { ...END, outcome: 'aborted', cause: 'cancelled' },
    ],
  ],
  [
    'an eviction in the middle of a job',
    [
      ...ran,
      evicted,
      { ...deletion, job: 1 },
      failed,
      { ...END, outcome: 'errored', cause: 'evicted' },
    ],
  ],
  [
    'a pod that ended by itself, whose job the server still shows as running',
    [...ran, evicted, { kind: 'pod', step: 'ended', ...POD }, { ...deletion, job: 1 }, failed],
  ],
  [
    'a job that runs on another runner, because its first runner was lost before it started',
    [
      ...ran.slice(0, 3),
      evicted,
      { ...JOB, step: 'assigned', workflowId: B },
      { ...JOB, step: 'completed', workflowId: B, conclusion: 'success' },
    ],
  ],
  [
    'a job that its user cancelled',
    [
      ...ran,
      { ...JOB, step: 'cancelled by its user' },
      { ...JOB, step: 'completed', conclusion: 'cancelled' },
    ],
  ],
  [
    'a pod that was removed before its worker had recorded it',
    [
      { kind: 'pod', step: 'created', ...POD },
      evicted,
      { kind: 'pod', step: 'deleted', ...POD },
      { kind: 'pod', step: 'created', ...POD, pod: 'uid-2' },
    ],
  ],
  [
    'a replacement with another registration and another pod',
    [
      { kind: 'pod', step: 'created', ...POD },
      evicted,
      { kind: 'pod', step: 'created', ...POD, pod: 'uid-2', runner: 'a-1-r2' },
    ],
  ],
])('no violation: %s', (_what, events) => {
  expect(violationsOf(timeline(...events), true)).toEqual([]);
});

test.each<[string, ObservedEvent[], string]>([
  [
    'a pod is deleted while its runner has a job',
    [...ran, { ...deletion, job: 1 }, done],
    'no pod is deleted during its job',
  ],
  [
    'a pod is deleted during a job after a drain request, which does not permit that',
    [...ran, stopRequested('drain'), { ...deletion, job: 1 }, done],
    'no pod is deleted during its job',
  ],
  [
    'a pod is deleted during a job before a stop request',
    [...ran, { ...deletion, job: 1 }, stopRequested('stop'), failed],
    'no pod is deleted during its job',
  ],
  [
    'a pod is deleted during a job before a fault removes it',
    [...ran, { ...deletion, job: 1 }, evicted, failed],
    'no pod is deleted during its job',
  ],
  [
    'a pod is deleted during a job after a fault has removed another pod of the runner',
    [{ ...evicted, pod: 'uid-0' }, ...ran, { ...deletion, job: 1 }, done],
    'no pod is deleted during its job',
  ],
  [
    'a registration has a second pod',
    [
      { kind: 'pod', step: 'created', ...POD },
      { kind: 'pod', step: 'stopping', ...POD },
      { kind: 'pod', step: 'created', ...POD, pod: 'uid-2' },
    ],
    'one pod for each registration',
  ],
  ['a job fails without a fault of its runner', [...ran, failed], 'each job runs to its end'],
  [
    'a job fails after a drain request',
    [...ran, stopRequested('drain'), failed],
    'each job runs to its end',
  ],
  [
    'a job is assigned to two runners',
    [
      ...ran,
      { ...JOB, step: 'assigned', workflowId: B },
      { ...JOB, step: 'completed', workflowId: B, conclusion: 'success' },
    ],
    'each job runs on one runner',
  ],
  ['a job never ends', ran, 'every job ends'],
  [
    'a cancelled job never ends',
    [...ran, { ...JOB, step: 'cancelled by its user' }],
    'every job ends',
  ],
  ['a job is never assigned', [{ kind: 'job', job: 1, step: 'queued' }], 'every job ends'],
  ['a workflow fails', [{ ...END, status: 'FAILED' }], 'every runner completes'],
  [
    'a workflow is terminated without a request',
    [evicted, { ...END, status: 'TERMINATED' }],
    'every runner completes',
  ],
  [
    'a workflow ends as Cancelled without its cancellation',
    [stopRequested('stop'), { ...END, status: 'CANCELLED' }],
    'every runner completes',
  ],
  [
    'the outcome errored without a fault of the runner',
    [{ ...END, outcome: 'errored', cause: 'never_registered' }],
    'a fault of another component does not end a runner',
  ],
  [
    'the outcome failed without a fault of the runner',
    [stopRequested('retire'), { ...END, outcome: 'failed' }],
    'a fault of another component does not end a runner',
  ],
  [
    'the outcome aborted without a stop request',
    [{ ...END, outcome: 'aborted', cause: 'run_timeout' }],
    'no runner is aborted without a request',
  ],
])('violation: %s', (_what, events, rule) => {
  expect(violationsOf(timeline(...events), true).map((found) => found.rule)).toEqual([rule]);
});

test('a job that has not ended is no violation before the end of the run', () => {
  expect(violationsOf(timeline(...ran), false)).toEqual([]);
  expect(violationsOf(timeline({ kind: 'job', job: 1, step: 'queued' }), false)).toEqual([]);
});

test('a timeline has the events of one runner in order, and the faults at that time', () => {
  const fault = {
    kind: 'fault',
    fault: 'worker_killed',
    edge: 'begins',
    target: 'worker 1',
  } as const;
  const entries: Entry[] = [
    { at: 0, ...fault },
    { at: 40_000, ...fault },
    { at: 52_000, kind: 'pod', step: 'deleted', ...POD },
    { at: 51_000, kind: 'deletion', workflowId: A, pod: POD.pod, graceS: 30, job: 1 },
    { at: 50_000, kind: 'pod', step: 'created', ...POD },
    { at: 51_500, kind: 'stopRequested', workflowId: B, how: 'stop' },
    { at: 90_000, ...fault },
  ];
  expect(timelineOf(entries, A)).toEqual([
    '   40.000 s  FAULT worker_killed begins (worker 1)',
    '   50.000 s  pod runner-a-1 created (runner a-1, uid-1)',
    '   51.000 s  a worker requests the deletion of pod uid-1, grace period 30, DURING JOB 1',
    '   52.000 s  pod runner-a-1 deleted (runner a-1, uid-1)',
  ]);
});
