import { expect, test } from '@jest/globals';
import { violationsOf } from './invariants.ts';
import { timelineOf, type Entry } from './timeline.ts';

const A = 'runner-a';
const B = 'runner-b';
const POD = { life: A, pod: 'uid-1', name: 'runner-a-1', runner: 'a-1' };
const JOB = { kind: 'job', job: 1, life: A } as const;
const END = { kind: 'end', life: A, status: 'COMPLETED' } as const;

type Happening = Entry extends infer E ? (E extends unknown ? Omit<E, 'at'> : never) : never;

/** One thing a second. */
const timeline = (...happenings: Happening[]): Entry[] =>
  happenings.map((happening, index) => ({ at: index * 1_000, ...happening }) as Entry);

const ran: Happening[] = [
  { kind: 'job', job: 1, step: 'queued' },
  { kind: 'pod', step: 'created', ...POD },
  { ...JOB, step: 'assigned' },
  { ...JOB, step: 'started' },
];
const done: Happening = { ...JOB, step: 'completed', conclusion: 'success' };
const failed: Happening = { ...JOB, step: 'completed', conclusion: 'failure' };
const deletion: Happening = { kind: 'deletion', life: A, pod: POD.pod, graceS: 30 };
const taken: Happening = { kind: 'taken', life: A, pod: POD.pod, how: 'evicted' };
const told = (how: 'drain' | 'stop' | 'force' | 'plain' | 'retire' | 'terminated'): Happening => ({
  kind: 'told',
  life: A,
  how,
});

test.each<[string, Happening[]]>([
  [
    'a pod that an administrator’s rule denies',
    [
      { kind: 'fault', fault: 'pods_denied', edge: 'begins' },
      { ...END, outcome: 'errored', cause: 'pod_rejected' },
    ],
  ],
  [
    'a whole life',
    [
      ...ran,
      done,
      deletion,
      { kind: 'pod', step: 'gone', ...POD },
      { ...END, outcome: 'succeeded' },
    ],
  ],
  [
    'a stop of a busy runner',
    [
      ...ran,
      told('stop'),
      { ...deletion, job: 1 },
      failed,
      { ...END, outcome: 'aborted', cause: 'cancelled' },
    ],
  ],
  [
    'plain cancellation',
    [...ran, told('plain'), { ...deletion, job: 1 }, failed, { ...END, status: 'CANCELLED' }],
  ],
  [
    'a workflow that a fault terminated, whose pod the sweep stops',
    [...ran, told('terminated'), { ...deletion, job: 1 }, failed, { ...END, status: 'TERMINATED' }],
  ],
  [
    'a drain lets the job finish',
    [...ran, told('drain'), done, deletion, { ...END, outcome: 'aborted', cause: 'cancelled' }],
  ],
  [
    'an eviction in the middle of a job',
    [
      ...ran,
      taken,
      { ...deletion, job: 1 },
      failed,
      { ...END, outcome: 'errored', cause: 'evicted' },
    ],
  ],
  [
    'a pod that ended by itself, whose job the server still believes in',
    [...ran, taken, { kind: 'pod', step: 'ended', ...POD }, { ...deletion, job: 1 }, failed],
  ],
  [
    'a job that went on elsewhere, because its runner was lost before it began',
    [
      ...ran.slice(0, 3),
      taken,
      { ...JOB, step: 'assigned', life: B },
      { ...JOB, step: 'completed', life: B, conclusion: 'success' },
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
    'a pod that was taken before anybody was told that it had been made',
    [
      { kind: 'pod', step: 'created', ...POD },
      taken,
      { kind: 'pod', step: 'gone', ...POD },
      { kind: 'pod', step: 'created', ...POD, pod: 'uid-2' },
    ],
  ],
  [
    'a replacement: another runner, another pod',
    [
      { kind: 'pod', step: 'created', ...POD },
      taken,
      { kind: 'pod', step: 'created', ...POD, pod: 'uid-2', runner: 'a-1-r2' },
    ],
  ],
])('fine: %s', (_what, happenings) => {
  expect(violationsOf(timeline(...happenings), true)).toEqual([]);
});

test.each<[string, Happening[], string]>([
  [
    'a pod is asked to go while its runner has a job',
    [...ran, { ...deletion, job: 1 }, done],
    'no pod goes under its job',
  ],
  [
    '… told to drain, which is no reason',
    [...ran, told('drain'), { ...deletion, job: 1 }, done],
    'no pod goes under its job',
  ],
  [
    '… told to stop only afterwards',
    [...ran, { ...deletion, job: 1 }, told('stop'), failed],
    'no pod goes under its job',
  ],
  [
    '… and taken only afterwards',
    [...ran, { ...deletion, job: 1 }, taken, failed],
    'no pod goes under its job',
  ],
  [
    '… of a life whose other pod was taken',
    [{ ...taken, pod: 'uid-0' }, ...ran, { ...deletion, job: 1 }, done],
    'no pod goes under its job',
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
  ['a job fails though nobody touched its runner', [...ran, failed], 'each job runs to its end'],
  ['… whose runner was told to drain', [...ran, told('drain'), failed], 'each job runs to its end'],
  [
    'a job is given to two',
    [
      ...ran,
      { ...JOB, step: 'assigned', life: B },
      { ...JOB, step: 'completed', life: B, conclusion: 'success' },
    ],
    'each job runs on one runner',
  ],
  ['a job never ends', ran, 'every job ends'],
  [
    '… nor does one that was cancelled',
    [...ran, { ...JOB, step: 'cancelled by its user' }],
    'every job ends',
  ],
  ['a job is never taken', [{ kind: 'job', job: 1, step: 'queued' }], 'every job ends'],
  ['a workflow fails', [{ ...END, status: 'FAILED' }], 'every life ends by itself'],
  ['… or is terminated', [taken, { ...END, status: 'TERMINATED' }], 'every life ends by itself'],
  [
    '… or ends as cancelled, and nobody cancelled it',
    [told('stop'), { ...END, status: 'CANCELLED' }],
    'every life ends by itself',
  ],
  [
    'a verdict of trouble without any',
    [{ ...END, outcome: 'errored', cause: 'never_registered' }],
    'what goes wrong around a runner is waited out',
  ],
  [
    '… of failure',
    [told('retire'), { ...END, outcome: 'failed' }],
    'what goes wrong around a runner is waited out',
  ],
  [
    'aborted unasked',
    [{ ...END, outcome: 'aborted', cause: 'run_timeout' }],
    'nobody is aborted unasked',
  ],
])('a violation: %s', (_what, happenings, rule) => {
  expect(violationsOf(timeline(...happenings), true).map((found) => found.rule)).toEqual([rule]);
});

test('while it goes on, what has not ended yet is none', () => {
  expect(violationsOf(timeline(...ran), false)).toEqual([]);
  expect(violationsOf(timeline({ kind: 'job', job: 1, step: 'queued' }), false)).toEqual([]);
});

test('a timeline has one life in the order of time, and the faults around it', () => {
  const fault = {
    kind: 'fault',
    fault: 'worker_killed',
    edge: 'begins',
    whom: 'worker 1',
  } as const;
  const entries: Entry[] = [
    { at: 0, ...fault },
    { at: 40_000, ...fault },
    { at: 52_000, kind: 'pod', step: 'gone', ...POD },
    { at: 51_000, kind: 'deletion', life: A, pod: POD.pod, graceS: 30, job: 1 },
    { at: 50_000, kind: 'pod', step: 'created', ...POD },
    { at: 51_500, kind: 'told', life: B, how: 'stop' },
    { at: 90_000, ...fault },
  ];
  expect(timelineOf(entries, A)).toEqual([
    '   40.000 s  FAULT worker_killed begins (worker 1)',
    '   50.000 s  pod runner-a-1 created (runner a-1, uid-1)',
    '   51.000 s  a worker asks to delete pod uid-1, grace 30, WHILE JOB 1 RUNS',
    '   52.000 s  pod runner-a-1 gone (runner a-1, uid-1)',
  ]);
});
