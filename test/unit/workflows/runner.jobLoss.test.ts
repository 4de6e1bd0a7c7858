/** Row by row: was a job lost with its runner? And that each way in which a runner ends asks the same function. */
import { describe, expect, test } from '@jest/globals';
import { isJobLost, type LastJobFacts } from '../../../workflows/runner/jobLoss.ts';
import { decideVerdict, finalFacts, type EndFacts } from '../../../workflows/runner/verdict.ts';
import type { PodSnapshot } from '../../../core/domain/pod.ts';
import { RunnerState } from '../../../workflows/runner/state.ts';

/** An ephemeral runner that was taken away while idle. */
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
  ['1: its record says that it was interrupted', { ...idle, record: 'interrupted' }, true],
  ['1: ... that it was running', { ...idle, record: 'running' }, true],
  ['1: ... of a static runner', { ...stays, record: 'interrupted' }, true],
  ['1: ... although it exited with 0, left alone', { ...leftAlone, record: 'interrupted' }, true],
  [
    '2: its record says that it was completed, whatever else is said',
    { ...idle, record: 'completed', busyAtEnd: true, removal: 'busy', jobInterrupted: true },
    false,
  ],
  [
    '2: ... and its registration is gone by itself',
    { ...idle, record: 'completed', removal: 'absent' },
    false,
  ],
  [
    '2: an event reports its success',
    { ...idle, jobSucceeded: true, busyAtEnd: true, removal: 'absent' },
    false,
  ],
  ['2: ... but it was interrupted', { ...idle, jobSucceeded: true, record: 'interrupted' }, true],
  ['2: ... but a static one', { ...stays, jobSucceeded: true, removal: 'busy' }, true],
  [
    '2: ... but a static one may have had another',
    { ...stays, record: 'completed', removal: 'busy' },
    true,
  ],
  ['3: it exited with 0, left alone', { ...leftAlone, busyAtEnd: true, removal: 'busy' }, false],
  ['3: ... but a static one', { ...stays, takenAway: false, exitCode: 0, busyAtEnd: true }, true],
  [
    '3: ... whose registration was removed',
    { ...stays, takenAway: false, cutLoose: true, exitCode: 0, busyAtEnd: true },
    false,
  ],
  ['3: ... but told to go', { ...idle, exitCode: 0, busyAtEnd: true }, true],
  ['4: busy at the end', { ...idle, busyAtEnd: true }, true],
  ['4: interrupted, by an event', { ...idle, jobInterrupted: true }, true],
  ['4: ... of a static runner', { ...stays, jobInterrupted: true }, true],
  [
    '4: ... whose record says that its last job was completed',
    { ...stays, record: 'completed', jobInterrupted: true },
    false,
  ],
  ['4: busy by the CI server', { ...idle, removal: 'busy' }, true],
  ['4: ... also where its record says none', { ...idle, record: 'none', removal: 'busy' }, true],
  [
    '5: exit 0 after a job that is over',
    { ...idle, exitCode: 0, hadJob: true, removal: 'absent' },
    false,
  ],
  ['6: its registration is gone by itself', { ...idle, removal: 'absent' }, true],
  ['6: ... perhaps by us', { ...idle, removal: 'absentAfterRetry' }, false],
  ['6: ... of one that never started', { ...idle, removal: 'absent', started: false }, false],
  ['6: ... of one whose record says none', { ...idle, removal: 'absent', record: 'none' }, false],
  ['6: ... of a static one', { ...stays, removal: 'absent' }, false],
  ['idle', idle, false],
  ['idle, of which the CI server says nothing', { ...idle, removal: undefined } as never, false],
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
    ['... by itself', { pod: interrupted, removal: 'absent' }, 'evicted'],
    [
      '... and its last probe said idle: the record decides',
      { pod: interrupted, busyAtEnd: false },
      'evicted',
    ],
    ['its node lost after a 204 that was a lie', { pod: nodeLost }, 'node_lost'],
    [
      'its registration handed on, without an answer',
      { pod: interrupted, removal: undefined } as never,
      'evicted',
    ],
    [
      'signaled inside its pod',
      { pod: { ...live, ended: true, exit: { ...interrupted.exit!, code: 143 } } },
      'agent_lost',
    ],
    [
      'torn down in good order, and its record tells of a job that came after all',
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

  test('a record that its job is completed: retired in good order', () => {
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

test('exit 0 with a record that its job was interrupted is no success', () => {
  const { cancel: _, ...facts } = drained;
  const exit = { ...interrupted.exit!, code: 0 };
  expect(decideVerdict({ ...facts, pod: { ...live, ended: true, exit } })).toMatchObject({
    outcome: 'errored',
    cause: 'agent_lost',
  });
});

describe('what its own tear-down does to a runner that lived until then', () => {
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

  test('that its probes fail, and it is killed, says nothing', () =>
    expect(
      decideVerdict(after({ ...tornDown, exit: { code: 143, oomKilled: false } })),
    ).toMatchObject({ outcome: 'succeeded' }));

  test.each([
    ['an event of a job that its pod had not shown in time', true, false, 'errored'],
    ['an event of a job that was known', true, true, 'succeeded'],
    ['a static runner: the event may be an old one', false, false, 'succeeded'],
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

  test('its record tells of a job', () =>
    expect(decideVerdict(after({ ...tornDown, exit: interrupted.exit! }))).toMatchObject({
      outcome: 'errored',
    }));

  test('one that had ended by then is judged by all that is known', () =>
    expect(after(interrupted, interrupted)).toMatchObject({ busyAtEnd: true }));
});
