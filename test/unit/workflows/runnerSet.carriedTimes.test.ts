/** Times that a set carries over are untrusted. A time in the future must not stop the set. */
import { expect, test } from '@jest/globals';
import type { RunnerSetInput } from '../../../core/contract/index.ts';
import { isTime } from '../../../core/domain/isTime.ts';
import type { CarriedSetState } from '../../../workflows/runnerSet/carriedState.ts';
import { decideSet, needsBusyEvents } from '../../../workflows/runnerSet/decide.ts';
import { setJobs } from '../../../workflows/runnerSet/jobStatus.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { nextRun } from '../../support/nextRun.ts';
import { setSpec } from '../../support/setModel.ts';

const NOW = 1_000_000_000;
const HOUR = 3_600_000;
const INPUT: RunnerSetInput = {
  name: 'linux',
  minIdle: 1,
  max: 3,
  limits: { maxRunnerHours: 100 },
  template: { organization: 'acme' },
};
const job = {
  action: 'queued' as const,
  jobId: '1',
  runAttempt: 1,
  repository: 'acme/app',
  labels: ['self-hosted'],
  at: NOW - 5,
};
const ended = {
  workflowId: 'runner-linux-bbbbbbbbbb',
  runnerName: 'linux-bbbbbbbbbb-0a1b2c3d4e',
  outcome: 'errored' as const,
  cause: 'image_pull' as const,
  message: 'x',
  wasOnline: false,
};

/** A set with a time in every field. */
function busySet(): SetState {
  const state = SetState.begin(setSpec(INPUT), INPUT, {}, NOW);
  state.onRunnersListed([], [], NOW);
  state.onRunnersStarting(
    ['a', 'b', 'c'].map((letter) => ({ workflowId: `runner-linux-${letter.repeat(10)}` })),
    NOW,
  );
  const up = {
    workflowId: 'runner-linux-aaaaaaaaaa',
    runnerName: 'linux-aaaaaaaaaa-0a1b2c3d4e',
  };
  state.onRunnerOnline(up, NOW);
  state.onRunnerBusy(up, NOW);
  state.onDrainRequested(['runner-linux-cccccccccc'], [], NOW);
  for (const ranJob of [true, false]) state.onRunnerEnded({ ...ended, ranJob }, NOW);
  state.onStartRejected(['runner-linux-dddddddddd'], 'quota', NOW);
  state.jobReports.onJobEvents(
    [job, { ...job, jobId: '2' }, { ...job, jobId: '2', action: 'completed' }],
    NOW,
  );
  state.onListStarted(NOW);
  state.jobReports.onQueueCheckStarted(NOW);
  state.jobReports.onQueueChecked(
    {
      checkedAt: NOW,
      complete: false,
      jobs: [{ ...job, id: '3', status: 'queued', queuedAt: NOW - 5 }],
      absent: [],
      endedSets: [],
      budgetUntil: NOW + HOUR,
    },
    NOW,
  );
  Object.assign(state.facts, { rerouteAt: NOW + 1, full: true });
  state.updateDemand(NOW);
  Object.assign(state.facts, { full: true, availableAt: NOW + 1 });
  return state;
}

/** The carried state with another value in place of every time. */
function forged(value: unknown): CarriedSetState {
  const text = JSON.stringify(busySet().carry(), (key, each: unknown) => {
    const isNear = typeof each === 'number' && Math.abs(each - NOW) <= HOUR;
    return isNear && key !== 'day' ? value : each;
  });
  const { jobs, ...rest } = JSON.parse(text) as CarriedSetState;
  const completed = jobs.completed.map(([, keys]) => [value as number, keys] as const);
  return { ...rest, jobs: { ...jobs, droppedUntil: value as number, completed } };
}

function restored(carried: CarriedSetState): SetState {
  const { spec, schedule } = busySet().facts;
  return SetState.restore(carried, { spec, declaration: INPUT, schedule, at: NOW });
}

test.each([9e15, 250e12, -9e15, 'x', null, {}])('%j in place of every time', (value) => {
  const state = restored(forged(value));
  const { facts, jobs, runners, guards } = state;
  // All times with which the set compares are at most a short time from now.
  const latest = NOW + facts.spec.relistMs + Math.max(facts.spec.maxRetryMs, HOUR);
  const times = [
    facts.at,
    facts.listStartedAt,
    facts.lastJobEventAt,
    facts.queueCheckStartedAt,
    facts.checkedAt,
    facts.rerouteAt,
    facts.availableAt,
    facts.incomplete?.since,
    facts.health.failedAt,
    facts.health.nextTryAt,
    facts.health.last?.at,
    facts.time?.at,
    ...guards.endTimes(),
    ...jobs.completed.values(),
    ...[...jobs.active.values()].flatMap(({ since, updatedAt }) => [since, updatedAt]),
    ...runners.all().map(({ startedAt }) => startedAt),
  ];
  expect(times.filter((at) => !isTime(at) || at > latest)).toEqual([]);
  state.updateDemand(facts.at);
  expect(needsBusyEvents(state, facts.at + 25 * HOUR)).toBe(true);
  expect(decideSet(state, latest)).toMatchObject({ listRunners: true, checkQueue: true });
  expect(setStatus(state, facts.at).jobs.queued).toBeGreaterThan(0);
  expect(setJobs(state, { repository: 'acme/app' })).toHaveLength(2);
  state.jobReports.onJobEvents([{ ...job, jobId: '9', at: latest }], latest);
  expect(jobs.get({ jobId: '9', runAttempt: 1 })).toBeDefined();
});

test('times that a run carries over are unchanged', () => {
  const state = busySet();
  const { listedAt: _listed, ...facts } = state.facts;
  const next = nextRun(state);
  const { listedAt: _again, ...nextFacts } = next.facts;
  expect(nextFacts).toEqual(facts);
  expect(next.runners.all()).toEqual(state.runners.all());
  expect(next.guards.entries()).toEqual(state.guards.entries());
  expect([...next.jobs.active]).toEqual([...state.jobs.active]);
});
