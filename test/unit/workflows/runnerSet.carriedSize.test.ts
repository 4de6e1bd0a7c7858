/** Size of the state that a set carries over with continue-as-new. Temporal fails a workflow beyond 2 MiB. */
import { describe, expect, test } from '@jest/globals';
import type { JobEvent, RunnerSetInput } from '../../../core/contract/index.ts';
import { MAX_SET_NAME, runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import { MAX_HOLDS } from '../../../core/domain/scale.ts';
import { MAX_RUNNERS } from '../../../core/input/runnerSetSchema.ts';
import { carryWithinLimit } from '../../../workflows/runnerSet/carriedSize.ts';
import { executeCommand } from '../../../workflows/runnerSet/commandRules.ts';
import { MAX_ACTIVE_JOBS } from '../../../workflows/runnerSet/jobs.ts';
import { MAX_TRACES } from '../../../workflows/runnerSet/jobTraces.ts';
import type { SetState } from '../../../workflows/runnerSet/state.ts';
import { FIRST_JOB_ID, fullSet, SUFFIXES } from '../../support/fullSet.ts';
import { nextRun } from '../../support/nextRun.ts';
import { readFileSync } from 'node:fs';

const KIB = 1024;
const MAX_OVER_JOBS = 20_000;

/** Records of a state in plain form. */
const recordsOf = (state: SetState): object => ({
  runners: JSON.stringify(state.runners.all()),
  guards: state.guards.entries(),
  jobs: JSON.stringify(state.jobs.lastQueued(MAX_ACTIVE_JOBS)),
  size: state.jobs.size,
  holds: state.holds.all(),
  carried: JSON.stringify(state.carry()),
});

const FULL = nextRun(fullSet());

describe('a set with everything at its limit', () => {
  const state = FULL;

  test('has the maximum number of each record', () => {
    expect(state.runners.all()).toHaveLength(MAX_RUNNERS);
    expect(state.runners.all().filter((runner) => runner.state === 'busy')).toHaveLength(
      MAX_RUNNERS,
    );
    expect(state.jobs.size).toEqual({ active: MAX_ACTIVE_JOBS, completed: MAX_OVER_JOBS });
    expect(state.jobs.traces.size).toBe(MAX_TRACES);
    expect(state.holds.size).toBe(MAX_HOLDS);
  });

  test('carries over less than 1.5 MiB, and drops nothing', () => {
    const { bytes, dropped, args } = carryWithinLimit(state, []);
    expect(dropped).toBeUndefined();
    expect(bytes).toBe(
      args.reduce((sum, each) => sum + Buffer.byteLength(JSON.stringify(each)), 0),
    );
    const [, stated = ''] =
      /([\d,]+) KiB carried over/.exec(readFileSync('docs/scale.md', 'utf8')) ?? [];
    expect(Math.round(bytes / KIB)).toBe(Number(stated.replace(',', '')));
    expect(bytes).toBeLessThan(1.5 * KIB * KIB);
  });

  test('is equal in the next run', () => {
    const next = nextRun(state);
    expect(recordsOf(next)).toEqual(recordsOf(state));
  });
});

describe('a set that is too large', () => {
  test.each<[string, number, object]>([
    ['ended jobs first', 0.95, { traces: 0, forwarded: 0, queued: 0 }],
    ['then traces', 0.8, { completed: MAX_OVER_JOBS, traces: MAX_TRACES, queued: 0 }],
    ['queued jobs last', 0.72, { completed: MAX_OVER_JOBS, traces: MAX_TRACES }],
  ])('drops %s', (_what, share, expected) => {
    const state = nextRun(FULL);
    const before = carryWithinLimit(state, []).bytes;
    const { bytes, dropped, args } = carryWithinLimit(state, [], before * share);
    expect(bytes).toBeLessThanOrEqual(before * share);
    expect(dropped).toMatchObject(expected);
    expect(dropped?.completed).toBeGreaterThan(0);
    // No runner and no running job is dropped.
    expect(args[1].runners.runners).toHaveLength(MAX_RUNNERS);
    expect(state.demand().running).toBe(MAX_RUNNERS);
    expect(state.facts.queueCheckStartedAt === undefined).toBe((dropped?.queued ?? 0) > 0);
    const next = nextRun(state);
    expect(recordsOf(next)).toEqual(recordsOf(state));
  });

  test('keeps the required records', () => {
    const { dropped, args } = carryWithinLimit(nextRun(FULL), [], 1);
    expect(dropped).toEqual({
      completed: MAX_OVER_JOBS,
      traces: MAX_TRACES,
      forwarded: 0,
      queued: MAX_ACTIVE_JOBS - MAX_RUNNERS,
    });
    expect(args[1].runners.runners).toHaveLength(MAX_RUNNERS);
  });

  test('drops the oldest of the ended jobs', () => {
    const state = nextRun(FULL);
    state.jobs.forgetCompleted(1);
    state.jobs.forgetQueued(2);
    const event = (jobId: number): JobEvent => ({
      action: 'queued',
      jobId: String(jobId),
      runAttempt: 1,
      repository: 'acme/app',
      labels: [],
      at: state.facts.at,
    });
    expect(state.jobs.applyEvent(event(FIRST_JOB_ID), state.facts.at)).toBeDefined();
    expect(state.jobs.applyEvent(event(FIRST_JOB_ID + 3), state.facts.at)).toBeUndefined();
  });
});

test('a set holds no more runners than it can carry over', () => {
  const state = nextRun(FULL);
  const runner = runnerWorkflowId('n'.repeat(MAX_SET_NAME), SUFFIXES(MAX_HOLDS));
  expect(executeCommand(state, { command: 'hold', runner } as never)).toMatchObject({
    type: 'SetCommandRejected',
  });
  const [held = ''] = state.holds.all();
  expect(
    executeCommand(state, { command: 'hold', runner: held, release: true } as never),
  ).toBeUndefined();
  expect(executeCommand(state, { command: 'hold', runner } as never)).toBeUndefined();
});

test('all names and times are equal in the next run', () => {
  const input: RunnerSetInput = { name: 'linux', replicas: 2, template: { organization: 'acme' } };
  const state = nextRun(fullSet(input, 12));
  const event: JobEvent = {
    action: 'in_progress',
    jobId: '007',
    runAttempt: 3,
    repository: 'acme/app',
    labels: [],
    at: state.facts.at - 5_000,
    runnerName: 'linux-',
  };
  const odd: Partial<JobEvent>[] = [
    {},
    { jobId: '0', runAttempt: 1, runnerName: '/x' },
    { jobId: 'a/b', runAttempt: 1, runnerName: 'linux-/x' },
    { jobId: '9'.repeat(30), runAttempt: 1, runnerName: '' },
    { jobId: '12', at: 0, action: 'queued', reroutedBy: 'set-other' },
    { jobId: '13', runAttempt: -1, at: 5, action: 'queued' },
  ];
  state.jobReports.onJobEvents(
    odd.map((more) => ({ ...event, ...more })),
    state.facts.at,
  );
  state.jobs.reroute('12/3', 'set-third', state.facts.at);
  const next = nextRun(state);
  expect(recordsOf(next)).toEqual(recordsOf(state));
  for (const { jobId = '007', runAttempt = 3 } of odd)
    expect(next.jobs.get({ jobId, runAttempt })).toEqual(state.jobs.get({ jobId, runAttempt }));
});
