import type { Scope } from '../../../core/domain/ciServer.ts';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { RunnerJobEvent } from '../../../core/contract/index.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';
import {
  NO_JOBS,
  trackJobEvent,
  concernsRunner,
  type RunnerJobs,
} from '../../../workflows/runner/jobEvents.ts';
import {
  confirmIdle,
  isSuspect,
  onJobEvent,
  onPodState,
} from '../../../workflows/runner/runnerActivity.ts';
import { RunnerState } from '../../../workflows/runner/state.ts';
import { recordPod } from '../../../workflows/runner/podWaits.ts';
import { currentFacts, waitMs } from '../../../workflows/runner/unregister.ts';
import {
  initialProgress,
  type UnregistrationFacts,
} from '../../../workflows/runner/unregisterFacts.ts';
import { verdictFacts } from '../../../workflows/runner/endFacts.ts';
import { decideVerdict } from '../../../workflows/runner/verdict.ts';
import type { PodView } from '../../../core/domain/pod.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const HOUR = 3_600_000;
const starts = (jobId: number, more: Partial<RunnerJobEvent> = {}): RunnerJobEvent => ({
  action: 'in_progress',
  jobId: String(jobId),
  ...more,
});
const ends = (jobId: number, more: Partial<RunnerJobEvent> = {}): RunnerJobEvent => ({
  action: 'completed',
  jobId: String(jobId),
  ...more,
});
const after = (...events: RunnerJobEvent[]): RunnerJobs => events.reduce(trackJobEvent, NO_JOBS);

describe('the jobs of one runner, from events that arrive late, twice and out of order', () => {
  test.each<[string, RunnerJobEvent[], string | undefined, string[]]>([
    ['no job runs without an event', [], undefined, []],
    ['queued does not start a job', [{ action: 'queued', jobId: '1' }], undefined, []],
    ['it started', [starts(1)], '1/1', []],
    ['it has ended', [starts(1), ends(1)], undefined, ['1/1']],
    ['its end arrives twice', [starts(1), ends(1), ends(1)], undefined, ['1/1']],
    ['its start arrives again after its end', [starts(1), ends(1), starts(1)], undefined, ['1/1']],
    ['its end arrives before its start', [ends(1), starts(1)], undefined, ['1/1']],
    ['a rerun is another job', [starts(1), ends(1), starts(1, { runAttempt: 2 })], '1/2', ['1/1']],
    ['the next job', [starts(1), ends(1), starts(2)], '2/1', ['1/1']],
    [
      'the next job, if the end of the previous one was lost',
      [starts(1), starts(2)],
      '2/1',
      ['1/1'],
    ],
    ['… and arrives later', [starts(1), starts(2), ends(1)], '2/1', ['1/1']],
    ['… and its start arrives again', [starts(1), starts(2), starts(1)], '2/1', ['1/1']],
    [
      'a start that arrives for the first time while the next job runs',
      [starts(2, { at: NOW + 60_000 }), starts(1, { at: NOW })],
      '2/1',
      ['1/1'],
    ],
    [
      '… or after that one has ended',
      [starts(2, { at: NOW + 60_000 }), ends(2, { at: NOW + 90_000 }), starts(1, { at: NOW })],
      undefined,
      ['2/1', '1/1'],
    ],
    [
      'a start in the same second as the previous end',
      [starts(1, { at: NOW }), ends(1, { at: NOW + 9_000 }), starts(2, { at: NOW + 8_000 })],
      '2/1',
      ['1/1'],
    ],
  ])('%s', (_what, events, running, over) => {
    const jobs = after(...events);
    expect([jobs.running?.key, jobs.completed]).toEqual([running, over]);
  });

  test('repeated events change nothing', () => {
    const jobs = after(starts(1), ends(1), starts(2));
    for (const event of [starts(1), ends(1), starts(2), { action: 'queued', jobId: '3' } as const])
      expect(trackJobEvent(jobs, event)).toBe(jobs);
  });

  test('a static runner that runs for months remembers a limited number of jobs', () => {
    const months = Array.from({ length: 5_000 }, (_, job) => [
      starts(job, { at: NOW + job * 60_000 }),
      ends(job, { at: NOW + job * 60_000 + 30_000 }),
    ]).flat();
    const jobs = after(...months);
    expect(JSON.stringify(jobs).length).toBeLessThan(2_000);
    // A redelivery about a forgotten job is recognized by its time.
    expect(trackJobEvent(jobs, starts(7, { at: NOW + 7 * 60_000 })).running).toBeUndefined();
  });
});

describe('the state of a runner: busy, deadline, job', () => {
  beforeEach(() => void jest.useFakeTimers({ now: NOW }));
  afterEach(() => void jest.useRealTimers());

  const PROBES = { online: true, busy: false } as const;
  function runnerState(ephemeral: boolean, reported: Partial<PodView> = {}): RunnerState {
    const parsed = parseRunnerInput(
      { organization: 'acme', ephemeral, timeouts: { jobTimeout: '1h' } },
      { workflowId: 'runner-1', nameHash: '0a1b2' },
    );
    if (!parsed.ok) throw new Error('a bad input');
    const it = new RunnerState('runner-1', 'f', NOW);
    it.admit({
      ...parsed.spec,
      location: { compute: 'kubernetes', cluster: 'c', namespace: 'ci', installation: 'i' },
    });
    it.runner.pod = {
      name: 'p',
      uid: 'u',
      workflowId: 'runner-1',
      scheduled: true,
      createdAt: '',
      startedAt: new Date(NOW).toISOString(),
      ended: false,
      deleted: false,
      terminating: false,
      ...reported,
    };
    return it;
  }
  type Step = RunnerJobEvent | 'busy' | 'idle' | 'again';
  /** Each step is a minute after the previous one. @returns whether it is busy, the minute from which its deadline counts, its job, and whether it ran one */
  function play(it: RunnerState, steps: readonly Step[]): unknown[] {
    for (const step of steps) {
      jest.advanceTimersByTime(60_000);
      if (typeof step === 'object') onJobEvent(it, step);
      else
        onPodState(it, {
          uid: 'u',
          state: step === 'idle' ? 'idle' : 'busy',
          ...(step === 'again' ? { newJob: true } : {}),
        });
    }
    const { busySince, jobDeadline, job } = it.runner;
    return [
      busySince !== undefined,
      jobDeadline === undefined ? undefined : (jobDeadline - HOUR - NOW) / 60_000,
      job,
      it.hadJob,
    ];
  }

  test.each<[string, Step[], unknown[]]>([
    ['its job has ended', [starts(1), ends(1)], [false, undefined, undefined, true]],
    [
      'the start of an ended job, delivered again',
      [starts(1), ends(1), starts(1)],
      [false, undefined, undefined, true],
    ],
    [
      'the end of one job while the next runs',
      [starts(1), starts(2), ends(1)],
      [true, 2, 'job (2)', true],
    ],
    [
      'the next job has its own deadline, even if the end of the previous one was lost',
      [starts(1), starts(2)],
      [true, 2, 'job (2)', true],
    ],
    [
      'the start of the first job, delivered again while the next runs',
      [starts(1), ends(1), starts(2), starts(1)],
      [true, 3, 'job (2)', true],
    ],
  ])('a static runner that does not report jobs: %s', (_what, steps, expected) =>
    expect(play(runnerState(false), steps)).toEqual(expected),
  );

  test.each<[string, Step[], unknown[]]>([
    ['its job runs, and an event names it', ['busy', starts(1)], [true, 1, 'job (1)', true]],
    [
      'an event names its job before its pod reports it',
      ['idle', starts(1), 'busy'],
      [true, 3, 'job (1)', true],
    ],
    [
      'the start of a job that arrives when its pod is idle again',
      ['busy', 'idle', starts(1)],
      [false, undefined, undefined, true],
    ],
    [
      'the end of one job while the next runs',
      ['busy', starts(1), 'idle', 'busy', starts(2), ends(1)],
      [true, 5, 'job (2)', true],
    ],
    [
      'the next job, if the pod was not seen idle in between',
      ['busy', starts(1), starts(2)],
      [true, 3, 'job (2)', true],
    ],
    [
      '… known by the end of the previous job',
      ['busy', starts(1), ends(1)],
      [true, 3, 'job (1)', true],
    ],
    [
      '… although no event named the job',
      ['busy', 'busy', 'busy', starts(2, { at: NOW + 3 * 60_000 })],
      [true, 4, 'job (2)', true],
    ],
    [
      'its own job, reported late',
      ['busy', 'busy', 'busy', starts(1, { at: NOW + 60_000 })],
      [true, 1, 'job (1)', true],
    ],
    [
      'the next job, after an event with a time in the future',
      [
        'busy',
        starts(1, { at: 250e12 }),
        ends(1),
        'idle',
        'busy',
        starts(2, { at: NOW + 6 * 60_000 }),
      ],
      [true, 5, 'job (2)', true],
    ],
    ['… known by its pod', ['busy', 'again'], [true, 2, undefined, true]],
  ])('a static runner that reports jobs: %s', (_what, steps, expected) =>
    expect(play(runnerState(false, PROBES), steps)).toEqual(expected),
  );

  test.each<[string, Step[], unknown[]]>([
    ['busy', ['busy'], [true, 1, undefined, true]],
    ['busy for one failed probe: no job', ['busy', 'idle'], [false, undefined, undefined, false]],
    [
      'busy according to the CI server, which a probe does not override',
      ['busy', starts(1), 'idle'],
      [true, 1, 'job (1)', true],
    ],
    [
      'its job has ended: it has ten minutes to exit, instead of one hour from its start',
      ['busy', starts(1), ends(1)],
      [true, 3 + 10 - 60, 'job (1)', true],
    ],
  ])('an ephemeral runner: %s', (_what, steps, expected) =>
    expect(play(runnerState(true, PROBES), steps)).toEqual(expected),
  );

  // A job may take at most three minutes.
  test.each<[string, Step[], boolean, 'in a set' | 'alone' | 'ephemeral']>([
    ['two minutes, in two jobs', ['busy', 'idle', 'busy', 'idle'], false, 'in a set'],
    [
      'three minutes, in three jobs',
      ['busy', 'idle', 'busy', 'idle', 'busy', 'idle'],
      true,
      'in a set',
    ],
    ['three minutes, in one job', ['busy', 'busy', 'busy', 'idle'], true, 'in a set'],
    [
      'three minutes, in one job that an event named',
      ['busy', starts(1), 'busy', 'idle'],
      false,
      'in a set',
    ],
    [
      'three minutes, with an event in between',
      ['busy', 'idle', 'busy', 'idle', starts(1), ends(1), 'busy', 'idle'],
      false,
      'in a set',
    ],
    [
      'an event, and then three minutes',
      [starts(1), ends(1), 'busy', 'idle', 'busy', 'idle', 'busy', 'idle'],
      true,
      'in a set',
    ],
    ['three minutes, alone', ['busy', 'busy', 'busy', 'idle'], true, 'alone'],
    [
      'three minutes of failed probes of an ephemeral runner',
      ['busy', 'busy', 'busy', 'idle'],
      false,
      'ephemeral',
    ],
  ])(
    'whether a runner is suspect that only its pod reported as busy for %s',
    (_what, steps, expected, kind) => {
      const it = runnerState(kind === 'ephemeral', PROBES);
      it.admit({
        ...it.spec,
        ...(kind === 'alone' ? {} : { set: 'linux' }),
        pod: { ...it.spec.pod, jobTimeoutCapMs: 3 * 60_000 },
      });
      play(it, steps);
      expect(isSuspect(it)).toBe(expected);
    },
  );

  test('its deadline restarts with each job, but not once it is unregistered, because no other can start', () => {
    const facts = (it: RunnerState, absentSinceMs?: number): UnregistrationFacts => ({
      ...currentFacts(it),
      ...initialProgress(absentSinceMs),
    });
    const it = runnerState(false, PROBES);
    play(it, ['busy', 'idle', 'busy']);
    expect(waitMs(it, 'jobDeadline', facts(it))).toBe(HOUR);
    expect(waitMs(it, 'jobDeadline', facts(it, NOW))).toBe(HOUR);
    // A job may take at most a day.
    expect(waitMs(it, 'jobDeadline', facts(it, NOW - 23.5 * HOUR))).toBe(HOUR / 2 - 3 * 60_000);
  });

  test('its own record that it had no job overrides a probe and an event', () => {
    const it = runnerState(true, PROBES);
    play(it, ['busy', starts(1)]);
    recordPod(it, {
      ...(it.runner.pod as PodView),
      ended: true,
      exit: { code: 0, oomKilled: false, record: { job: 'none' } },
    });
    expect([it.hadJob, it.observedActivity()]).toEqual([false, 'idle']);
  });

  test('a plain command is busy from its start, also before it is reported as online; one that did not start is not waited for', () => {
    const parsed = parseRunnerInput(
      { name: 'm', ciServer: 'none', image: 'i', command: ['work'] },
      { nameHash: '0a1b2' },
    );
    if (!parsed.ok) throw new Error('a bad input');
    const it = runnerState(false, { online: false });
    it.admit({ ...parsed.spec, location: it.spec.location });
    const { pod } = it.runner;
    expect([it.observedActivity(), (delete it.runner.pod, it.observedActivity())]).toEqual([
      'busy',
      'unknown',
    ]);
    Object.assign(it, { failure: { message: 'late' } });
    it.runner.pod = pod as PodView;
    expect(it.observedActivity()).toBe('unknown');
  });

  test('a runner that had a job counts as started, even if its pod was not seen again before it vanished', () => {
    const [reported, called, neither] = [runnerState(true), runnerState(true), runnerState(true)];
    for (const it of [reported, called, neither])
      it.runner.pod = {
        ...(it.runner.pod as PodView),
        startedAt: undefined,
        ended: true,
        deleted: true,
      } as unknown as PodView;
    onJobEvent(reported, starts(1));
    const unregistered = { removedWhileRunning: false, stoppedByHoldfast: false };
    expect(
      [
        verdictFacts(reported, unregistered),
        verdictFacts(called, { ...unregistered, removal: 'busy' }),
        verdictFacts(neither, unregistered),
      ].map(({ started }) => started),
    ).toEqual([true, true, false]);
    expect(decideVerdict(verdictFacts(called, { ...unregistered, removal: 'busy' }))).toMatchObject(
      {
        kind: 'end',
        outcome: 'errored',
        cause: 'deleted_externally',
      },
    );
  });

  test('a runner that came online after its deadline and ran a job is not never_registered', () => {
    const [worked, idle] = [runnerState(true), runnerState(true)];
    onJobEvent(worked, starts(1));
    const unregistered = { removedWhileRunning: false, stoppedByHoldfast: false };
    for (const it of [worked, idle])
      Object.assign(it, { failure: { message: 'late', cause: 'never_registered' } });
    expect([worked, idle].map((it) => verdictFacts(it, unregistered).failure?.cause)).toEqual([
      undefined,
      'never_registered',
    ]);
    for (const it of [worked, idle])
      Object.assign(it, { failure: { message: 'refused', cause: 'quota_exceeded' } });
    expect([worked, idle].map((it) => verdictFacts(it, unregistered).failure?.cause)).toEqual([
      'quota_exceeded',
      'quota_exceeded',
    ]);
  });

  describe('an event reports a job, and the pod reports none', () => {
    test.each<[what: string, ephemeral: boolean, steps: Step[], expected: string]>([
      ['ephemeral: the event is final', true, [starts(1), 'idle'], 'busy'],
      ['... in every order', true, ['idle', starts(1), 'idle', 'idle'], 'busy'],
      ['... and so is the event of its end', true, ['idle', starts(1), ends(1)], 'idle'],
      ['static: an earlier report of the pod is older', false, ['idle', starts(1)], 'busy'],
      ['... a later report may be late', false, ['idle', starts(1), 'idle'], 'busy'],
      ['... its end was reported', false, ['idle', starts(1), 'idle', ends(1)], 'idle'],
      ['... the next job was reported', false, [starts(1), 'busy', 'idle', starts(2)], 'busy'],
      ['static, and its pod reports busy', false, ['busy', starts(1)], 'busy'],
    ])('%s', (_what, ephemeral, steps, expected) => {
      const it = runnerState(ephemeral, PROBES);
      play(it, steps);
      expect(it.observedActivity()).toBe(expected);
    });

    test.each([
      [59_999, 'busy'],
      [60_000, 'idle'],
    ] as const)(
      'a static runner whose pod is read %d ms after the event is %s',
      (afterMs, expected) => {
        const it = runnerState(false, PROBES);
        play(it, ['idle', starts(1)]);
        expect(currentFacts(it)).toMatchObject({ observedActivity: 'busy', idleInDoubt: true });
        confirmIdle(it, NOW + 120_000 + afterMs);
        expect(it.observedActivity()).toBe(expected);
      },
    );

    test('a read of the pod does not make an ephemeral runner idle, or one whose pod reports busy', () => {
      const [once, stays] = [runnerState(true, PROBES), runnerState(false, PROBES)];
      play(once, ['idle', starts(1)]);
      play(stays, ['busy', starts(1)]);
      for (const it of [once, stays]) confirmIdle(it, NOW + HOUR);
      expect([once, stays].map((it) => it.observedActivity())).toEqual(['busy', 'busy']);
      play(stays, ['idle']);
      expect(stays.observedActivity()).toBe('busy');
    });
  });

  describe('after its end', () => {
    const evicted = { deleted: true, terminating: true, ended: true, terminationRequestedAt: '' };
    const interrupted = { code: 0, oomKilled: false, record: { job: 'interrupted' as const } };
    const unregistered = { removedWhileRunning: false, stoppedByHoldfast: false };
    test.each<[what: string, end: Partial<PodView>, news: Step]>([
      ['idle, of a runner whose record has an interrupted job', { exit: interrupted }, 'idle'],
      ['idle, of a runner without a record', evicted, 'idle'],
      ['a new job', evicted, 'again'],
      ['its lost job has ended', evicted, ends(1, { conclusion: 'failure' })],
      ['... without a conclusion', evicted, ends(1)],
    ])('a late report changes nothing about a job that ran: %s', (_what, end, news) => {
      const it = runnerState(true, PROBES);
      play(it, [starts(1), 'busy']);
      recordPod(it, { ...(it.runner.pod as PodView), ended: true, ...end });
      play(it, [news]);
      expect(it.observedActivity()).toBe('busy');
      expect(decideVerdict(verdictFacts(it, unregistered))).toMatchObject({ outcome: 'errored' });
    });

    test.each<[what: string, requestedAfterMs: number | undefined, isInterrupted: boolean]>([
      ['before its job failed', -5_000, true],
      ['after that, within the tolerance of the clocks', 120_000, true],
      ['after that, beyond the tolerance of the clocks', 120_001, false],
      ['never', undefined, false],
    ])('its termination was requested %s', (_what, requestedAfterMs, isInterrupted) => {
      const it = runnerState(true);
      play(it, [starts(1), ends(1, { conclusion: 'failure' })]);
      const { jobFailedAt = 0 } = it.runner;
      const requestedAt =
        requestedAfterMs === undefined
          ? undefined
          : new Date(jobFailedAt + requestedAfterMs).toISOString();
      recordPod(it, {
        ...(it.runner.pod as PodView),
        startedAt: new Date(NOW - HOUR).toISOString(),
        ended: true,
        exit: { code: 0, oomKilled: false },
        ...(requestedAt !== undefined && {
          terminating: true,
          terminationRequestedAt: requestedAt,
          disruptionReason: 'EvictionByEvictionAPI',
        }),
      });
      const facts = verdictFacts(it, unregistered);
      expect(facts.jobInterrupted).toBe(isInterrupted);
      expect(decideVerdict(facts)).toMatchObject({
        outcome: isInterrupted ? 'errored' : 'succeeded',
      });
    });

    test('a read that finds its pod gone does not prove that a static runner was idle', () => {
      const it = runnerState(false, PROBES);
      play(it, ['idle', starts(1)]);
      recordPod(it, { ...(it.runner.pod as PodView), ...evicted });
      confirmIdle(it, NOW + HOUR);
      expect(it.observedActivity()).toBe('busy');
      expect(decideVerdict(verdictFacts(it, unregistered))).toMatchObject({ outcome: 'errored' });
    });

    test('a late busy report is not a job', () => {
      const it = runnerState(true, PROBES);
      recordPod(it, { ...(it.runner.pod as PodView), ...evicted });
      expect(play(it, ['busy'])).toEqual([false, undefined, undefined, false]);
      expect(it.observedActivity()).toBe('idle');
    });

    test('a runner that does not report jobs has completed its job, according to a late event', () => {
      const it = runnerState(true);
      play(it, [starts(1)]);
      recordPod(it, { ...(it.runner.pod as PodView), ...evicted });
      play(it, [ends(1, { conclusion: 'success' })]);
      expect(it.observedActivity()).toBe('unknown');
    });
  });

  test('events of another runner are ignored', () => {
    const it = runnerState(false);
    expect(play(it, [starts(1, { runnerName: 'somebody-else' })])).toEqual([
      false,
      undefined,
      undefined,
      false,
    ]);
    expect(play(it, [starts(1, { runnerName: it.runnerName })])).toEqual([
      true,
      2,
      'job (1)',
      true,
    ]);
  });
});

test.each<[object, boolean]>([
  [{}, true],
  [{ runnerName: 'r' }, true],
  [{ runnerName: 'r', runnerId: '7' }, true],
  [{ runnerName: 'q', runnerId: '7' }, false],
  [{ runnerName: 'r', runnerId: '8' }, false],
])('an event %j is about the runner r, 7: %p', (about, is) => {
  expect(concernsRunner({ action: 'queued', jobId: '1', ...about }, 'r', '7')).toBe(is);
});

test.each<[Scope['kind'], scope: string, repository: string | undefined, is: boolean]>([
  ['organization', 'acme', 'acme/web', true],
  ['organization', 'Acme', 'ACME/web', true],
  ['organization', 'acme', 'rival/web', false],
  ['organization', 'acme', 'acme-evil/web', false],
  ['organization', 'acme', undefined, true],
  ['repository', 'acme/web', 'acme/Web', true],
  ['repository', 'acme/web', 'acme/api', false],
  ['enterprise', 'big', 'anybody/web', true],
])('a runner of the %s %s, and an event of %s: %p', (kind, name, repository, is) => {
  const event = { action: 'queued', jobId: '1', runnerName: 'r' } as const;
  const about = repository === undefined ? event : { ...event, repository };
  expect(concernsRunner(about, 'r', undefined, { kind, name })).toBe(is);
});

test('a runner without a known id is recognized by its name', () => {
  expect(
    concernsRunner(
      { action: 'queued', jobId: '1', runnerName: 'r', runnerId: '8' },
      'r',
      undefined,
    ),
  ).toBe(true);
});
