/** The decision table whether a job was lost with its runner, and that every kind of end uses it. */
import { describe, expect, test } from '@jest/globals';
import { isJobLost, type LastJobFacts } from '../../../workflows/runner/jobLoss.ts';
import { finalFacts, type EndFacts } from '../../../workflows/runner/endFacts.ts';
import { decideVerdict } from '../../../workflows/runner/verdict.ts';
import type { PodSnapshot } from '../../../core/domain/pod.ts';
import { RunnerState } from '../../../workflows/runner/state.ts';

/** An ephemeral runner that was lost while idle. */
const idle: LastJobFacts = {
  ephemeral: true,
  started: true,
  takenAway: true,
  cutLoose: false,
  busyAtEnd: false,
  hadJob: false,
  jobSucceeded: false,
  jobInterrupted: false,
  removal: 'removed',
};
const stays = { ...idle, ephemeral: false };
const leftAlone = { ...idle, takenAway: false, exitCode: 0 };

test.each<[what: string, facts: LastJobFacts, lost: boolean]>([
  ['1: its record has an interrupted job', { ...idle, record: 'interrupted' }, true],
  ['1: ... a running job', { ...idle, record: 'running' }, true],
  ['1: ... of a static runner', { ...stays, record: 'interrupted' }, true],
  [
    '1: ... although it exited with 0, without a request',
    { ...leftAlone, record: 'interrupted' },
    true,
  ],
  [
    '2: its record has a completed job, despite other reports',
    { ...idle, record: 'completed', busyAtEnd: true, removal: 'busy', jobInterrupted: true },
    false,
  ],
  [
    '2: ... and its registration was removed by the CI server',
    { ...idle, record: 'completed', removal: 'absent' },
    false,
  ],
  [
    '2: an event reports its success',
    { ...idle, jobSucceeded: true, busyAtEnd: true, removal: 'absent' },
    false,
  ],
  ['2: ... but it was interrupted', { ...idle, jobSucceeded: true, record: 'interrupted' }, true],
  ['2: ... but of a static runner', { ...stays, jobSucceeded: true, removal: 'busy' }, true],
  [
    '2: ... but a static runner may have had another job',
    { ...stays, record: 'completed', removal: 'busy' },
    true,
  ],
  [
    '3: it exited with 0, without a request',
    { ...leftAlone, busyAtEnd: true, removal: 'busy' },
    false,
  ],
  [
    '3: ... but a static runner',
    { ...stays, takenAway: false, exitCode: 0, busyAtEnd: true },
    true,
  ],
  [
    '3: ... whose registration was removed',
    { ...stays, takenAway: false, cutLoose: true, exitCode: 0, busyAtEnd: true },
    false,
  ],
  ['3: ... but on request', { ...idle, exitCode: 0, busyAtEnd: true }, true],
  ['4: busy at the end', { ...idle, busyAtEnd: true }, true],
  ['4: interrupted, by an event', { ...idle, jobInterrupted: true }, true],
  ['4: ... of a static runner', { ...stays, jobInterrupted: true }, true],
  [
    '4: ... whose record has a completed last job',
    { ...stays, record: 'completed', jobInterrupted: true },
    false,
  ],
  ['4: busy at the CI server', { ...idle, removal: 'busy' }, true],
  ['4: ... also if its record has no job', { ...idle, record: 'none', removal: 'busy' }, true],
  [
    '5: exit 0 after a job that has ended',
    { ...idle, exitCode: 0, hadJob: true, removal: 'absent' },
    false,
  ],
  ['6: its registration was removed by the CI server', { ...idle, removal: 'absent' }, true],
  ['6: ... or by Holdfast', { ...idle, removal: 'absentAfterRetry' }, false],
  ['6: ... of a runner that never started', { ...idle, removal: 'absent', started: false }, false],
  [
    '6: ... of a runner whose record has no job',
    { ...idle, removal: 'absent', record: 'none' },
    false,
  ],
  ['6: ... of a static runner', { ...stays, removal: 'absent' }, false],
  ['idle', idle, false],
  ['idle, without a report of the CI server', { ...idle, removal: undefined } as never, false],
])('%s', (_what, facts, lost) => expect(isJobLost(facts)).toBe(lost));

const ISO = '2026-01-01T00:00:00.000Z';
const live: PodSnapshot = {
  name: 'p',
  uid: 'u',
  scheduled: true,
  createdAt: ISO,
  startedAt: ISO,
  ended: false,
  deleted: false,
  terminating: false,
};
const interrupted: PodSnapshot = {
  ...live,
  ended: true,
  terminating: true,
  disruptionReason: 'EvictionByEvictionAPI',
  exit: { code: 143, oomKilled: false, record: { job: 'interrupted', reason: 'evicted' } },
};
const nodeLost: PodSnapshot = {
  ...live,
  ended: true,
  deleted: true,
  disruptionReason: 'DeletionByTaintManager',
};
const drained: EndFacts = {
  stoppedByHoldfast: false,
  ephemeral: true,
  kind: 'github',
  checkpoints: false,
  started: true,
  wasOnline: true,
  wasRegistered: true,
  hadJob: true,
  busyAtEnd: true,
  jobSucceeded: false,
  jobInterrupted: false,
  removal: 'removed',
  onEviction: 'fail',
  neverStartedInARow: 0,
  shortLivedInARow: 1,
  cancel: { mode: 'drain', by: 'drain', reason: 'why' },
};

describe.each([true, false])('drained, and lost with its job (ephemeral: %s)', (ephemeral) => {
  test.each<[what: string, facts: Partial<EndFacts>, cause: string]>([
    ['evicted, its registration gone', { pod: interrupted }, 'evicted'],
    ['... removed by the CI server', { pod: interrupted, removal: 'absent' }, 'evicted'],
    [
      '... and its last probe reported idle: the record decides',
      { pod: interrupted, busyAtEnd: false },
      'evicted',
    ],
    ['its node lost after a 204 during its job', { pod: nodeLost }, 'node_lost'],
    [
      'its registration handed off, without a response',
      { pod: interrupted, removal: undefined } as never,
      'evicted',
    ],
    [
      'signaled inside its pod',
      { pod: { ...live, ended: true, exit: { ...interrupted.exit!, code: 143 } } },
      'agent_lost',
    ],
    [
      'torn down normally, and its record has a job that started late',
      { pod: { ...live, exit: interrupted.exit! }, busyAtEnd: false },
      'agent_lost',
    ],
  ])('%s', (_what, facts, cause) =>
    expect(decideVerdict({ ...drained, ephemeral, ...facts })).toMatchObject({
      kind: 'end',
      outcome: 'errored',
      cause,
    }),
  );

  test('a record with a completed job: drained normally', () => {
    const exit = { code: 0, oomKilled: false, record: { job: 'completed' as const } };
    expect(
      decideVerdict({
        ...drained,
        ephemeral,
        busyAtEnd: false,
        pod: { ...live, ended: true, terminating: true, exit },
      }),
    ).toMatchObject({ outcome: 'succeeded' });
  });
});

test('exit 0 with a record of an interrupted job is not a success', () => {
  const { cancel: _, ...facts } = drained;
  const exit = { ...interrupted.exit!, code: 0 };
  expect(decideVerdict({ ...facts, pod: { ...live, ended: true, exit } })).toMatchObject({
    outcome: 'errored',
    cause: 'agent_lost',
  });
});

describe('effects of the tear-down on a runner that ran until then', () => {
  const unregistered = {
    removal: 'removed',
    removedWhileRunning: true,
    stoppedByHoldfast: false,
  } as const;
  const after = (
    pod: PodSnapshot,
    before: PodSnapshot = live,
    { ephemeral = false, hadJob = true, isTold = false, removedWhileRunning = true } = {},
  ): EndFacts => {
    const spec = {
      scope: { kind: 'repository', name: 'a/b' },
      ephemeral,
      maxAttempts: 1,
      onEviction: 'fail',
      pod: { supervision: { runnerKind: 'github', onTerm: 'drain' } },
    };
    const state = new RunnerState('w', 'r', 0);
    state.admit(spec as never);
    const jobs = { completed: [], latestEventAt: 0, running: { key: '1', label: 'a job' } };
    Object.assign(state.runner, {
      pod,
      ...(removedWhileRunning ? { podBusy: true } : {}),
      ...(isTold ? { jobs } : {}),
    });
    const end = { ...unregistered, removedWhileRunning };
    return finalFacts(state, end, {
      ...drained,
      ephemeral,
      hadJob,
      busyAtEnd: false,
      pod: before,
    });
  };
  const tornDown: PodSnapshot = { ...live, ended: true, terminating: true };

  test('failing probes and a kill are no evidence of a lost job', () =>
    expect(
      decideVerdict(after({ ...tornDown, exit: { code: 143, oomKilled: false } })),
    ).toMatchObject({ outcome: 'succeeded' }));

  test.each([
    ['an event of a job that its pod had not reported in time', true, false, 'errored'],
    ['an event of a known job', true, true, 'succeeded'],
    ['a static runner: the event may be old', false, false, 'succeeded'],
  ])('%s', (_what, ephemeral, hadJob, outcome) =>
    expect(
      decideVerdict(
        after({ ...tornDown, exit: { code: 143, oomKilled: false } }, live, {
          ephemeral,
          hadJob,
          isTold: true,
        }),
      ),
    ).toMatchObject({ outcome }),
  );

  test.each([
    ['an event of a job', true, true],
    ['no event', false, false],
  ])('a static runner that was lost before it was unregistered: %s', (_what, isTold, busyAtEnd) =>
    expect(after(tornDown, live, { isTold, removedWhileRunning: false })).toMatchObject({
      busyAtEnd,
    }),
  );

  test('its record has a job', () =>
    expect(decideVerdict(after({ ...tornDown, exit: interrupted.exit! }))).toMatchObject({
      outcome: 'errored',
    }));

  test('a runner that had ended before is judged by all facts', () =>
    expect(after(interrupted, interrupted)).toMatchObject({ busyAtEnd: true }));
});
