import { describe, expect, test } from '@jest/globals';
import type { ListedRunner } from '../../../core/activities/index.ts';
import type { JobEvent, RunnerPhase } from '../../../core/contract/index.ts';
import { runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import type { CarriedSet } from '../../../workflows/runnerSet/carriedState.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { setDetails, setStatus } from '../../../workflows/runnerSet/status.ts';
import { setSpec } from '../../support/setModel.ts';
import { nextRun } from '../../support/nextRun.ts';

const NOW = 1_000_000;
const SUFFIX = 'abcdefghij';
const workflowId = runnerWorkflowId('linux', SUFFIX);
const runnerName = `linux-${SUFFIX}-0a1b2c3d4e`;

const event = (action: JobEvent['action'], jobId: number, runner?: string): JobEvent => ({
  action,
  jobId: String(jobId),
  runAttempt: 1,
  repository: 'acme/app',
  labels: [],
  at: NOW,
  ...(runner === undefined ? {} : { runnerName: runner }),
});

/** A set whose single runner has the first of two jobs. */
function busySet(ephemeral: boolean): SetState {
  const template = { organization: 'acme', ephemeral };
  const state = SetState.begin(
    setSpec({ minIdle: 0, max: 5, template }),
    { name: 'linux', minIdle: 0, max: 5, template },
    {},
    NOW,
  );
  state.onRunnersListed([], [], NOW);
  state.jobReports.onJobEvents([event('queued', 1)], NOW);
  state.onRunnersStarting([{ workflowId }], NOW);
  state.onRunnerOnline({ workflowId, runnerName }, NOW);
  state.jobReports.onJobEvents([event('in_progress', 1, runnerName), event('queued', 2)], NOW);
  state.updateDemand(NOW);
  return state;
}

test('a job does not wait until an ephemeral runner that had its job is gone', () => {
  const state = busySet(true);
  expect(state.facts.desired).toBe(2);
  state.jobReports.onJobEvents([event('completed', 1, runnerName)], NOW);
  state.updateDemand(NOW);
  expect({
    desired: state.facts.desired,
    runners: state.runners.all().map((runner) => runner.state),
  }).toEqual({ desired: 2, runners: ['busy'] });
  state.onRunnerEnded(
    { workflowId, runnerName, outcome: 'succeeded', wasOnline: true, ranJob: true },
    NOW,
  );
  state.updateDemand(NOW);
  expect({ desired: state.facts.desired, runners: state.runners.all() }).toEqual({
    desired: 1,
    runners: [],
  });
});

test('a static runner takes it', () => {
  const state = busySet(false);
  state.jobReports.onJobEvents([event('completed', 1, runnerName)], NOW);
  state.updateDemand(NOW);
  expect({
    desired: state.facts.desired,
    runners: state.runners.all().map((runner) => runner.state),
  }).toEqual({ desired: 1, runners: ['idle'] });
});

test('a set with replicas checks the queue while it has a queued job without an end event', () => {
  const template = { organization: 'acme', ephemeral: false };
  const state = SetState.begin(
    setSpec({ replicas: 1, template }),
    { name: 'linux', replicas: 1, template },
    {},
    NOW,
  );
  state.onRunnersListed([], [], NOW);
  expect(decideSet(state, NOW).checkQueue).toBe(false);
  state.jobReports.onJobEvents([event('queued', 1)], NOW);
  expect(decideSet(state, NOW).checkQueue).toBe(true);
  state.jobReports.onQueueCheckStarted(NOW);
  state.jobReports.onQueueChecked(
    {
      jobs: [
        {
          id: '1',
          runAttempt: 1,
          status: 'queued',
          queuedAt: NOW,
          repository: 'acme/app',
          labels: [],
        },
      ],
      complete: true,
      absent: [],
      endedSets: [],
      checkedAt: NOW,
    },
    NOW,
  );
  const again = NOW + state.facts.spec.queueCheckMs;
  expect([decideSet(state, again - 1).checkQueue, decideSet(state, again).checkQueue]).toEqual([
    false,
    true,
  ]);
  state.jobReports.onQueueCheckStarted(again);
  state.jobReports.onQueueChecked(
    { jobs: [], complete: true, absent: [], endedSets: [], checkedAt: again },
    again,
  );
  expect(state.jobs.queued).toBe(0);
  expect(decideSet(state, again + state.facts.spec.queueCheckMs).checkQueue).toBe(false);
});

describe('a queue check from before the end of a runner', () => {
  const stale = (ephemeral: boolean, known: boolean): SetState => {
    const state = busySet(ephemeral);
    if (!known)
      state.jobReports.onJobEvents([event('completed', 1, runnerName), event('completed', 2)], NOW);
    state.onRunnerEnded(
      { workflowId, runnerName, outcome: 'succeeded', wasOnline: true, ranJob: true },
      NOW,
    );
    const job = {
      id: known ? '1' : '3',
      runAttempt: 1,
      repository: 'acme/app',
      labels: [],
      status: 'in_progress' as const,
      queuedAt: NOW,
      startedAt: NOW,
      runnerName,
    };
    state.jobReports.onQueueChecked(
      { checkedAt: NOW, complete: true, absent: [], endedSets: [], jobs: [job] },
      NOW + 1,
    );
    state.updateDemand(NOW + 1);
    return state;
  };
  test.each([
    ['a job that the set knows', true, 1],
    ['a job that is new to the set', false, 0],
  ])('does not restore %s', (_what, known, queued) => {
    for (const ephemeral of [true, false])
      expect({
        ...stale(ephemeral, known).demand(),
        desired: stale(ephemeral, known).facts.desired,
      }).toEqual({ queued, running: 0, desired: queued });
  });
});

describe('a redelivery', () => {
  const HOUR = 3_600_000;
  const all = [
    event('queued', 1),
    event('in_progress', 1, runnerName),
    event('completed', 1, runnerName),
  ];

  test.each([
    ['a moment later', 1_000],
    ['after its job was dropped', 7 * HOUR],
  ])('%s changes nothing', (_when, later) => {
    const state = busySet(false);
    state.jobReports.onJobEvents([...all, event('completed', 2, runnerName)], NOW);
    state.onRunnersListed(
      [{ workflowId, runnerName, phase: 'Idle', startedAt: NOW }],
      [],
      NOW + later,
    );
    state.updateDemand(NOW + later);
    const before = JSON.parse(JSON.stringify(state.carry())) as CarriedSet;
    for (const one of all) state.jobReports.onJobEvents([one], NOW + later);
    state.updateDemand(NOW + later);
    expect(state.carry()).toEqual(before);
    expect(state.runners.all()).toMatchObject([{ state: 'idle' }]);
  });

  test('a new job of that time is accepted', () => {
    const state = busySet(false);
    state.jobReports.onJobEvents(all, NOW);
    state.onRunnersListed([], [], NOW + 7 * HOUR);
    state.jobReports.onJobEvents([{ ...event('queued', 3), at: NOW + 7 * HOUR }], NOW + 7 * HOUR);
    expect(state.demand().queued).toBe(2);
  });
});

describe('the list has the reported phase of a runner', () => {
  const one = (phase: RunnerPhase, more: Partial<ListedRunner> = {}): ListedRunner => ({
    workflowId,
    runnerName,
    phase,
    startedAt: NOW,
    ...more,
  });
  const known = (state: SetState): unknown =>
    state.runners
      .all()
      .map((runner) => [runner.workflowId, runner.state, runner.drainRequested?.times]);

  test('a draining workflow that continues with a replacement belongs to the set again', () => {
    const state = busySet(true);
    state.onRunnersListed([one('TearingDown')], [], NOW);
    expect(known(state)).toEqual([[workflowId, 'draining', undefined]]);
    state.onRunnersListed([one('Provisioning', { runnerName: `${runnerName}-r2` })], [], NOW);
    expect(known(state)).toEqual([[workflowId, 'starting', undefined]]);
    state.onRunnersListed([one('Idle', { runnerName: `${runnerName}-r2` })], [], NOW);
    expect(known(state)).toEqual([[workflowId, 'idle', undefined]]);
  });

  test.each([
    ['was just reported', 29_999, { running: 1, state: 'busy' }],
    ['is old, because its end was lost', 30_000, { running: 0, state: 'idle' }],
  ])(
    'a static runner that reports idle, and whose job %s',
    (_what, laterMs, { running, state: expected }) => {
      const state = busySet(false);
      state.onRunnersListed([one('Idle')], [], NOW + laterMs);
      expect(known(state)).toEqual([[workflowId, expected, undefined]]);
      expect(state.demand()).toEqual({ queued: 1, running });
      state.onRunnersListed([one('Busy')], [], NOW + laterMs + 1);
      expect(known(state)).toEqual([[workflowId, 'busy', undefined]]);
    },
  );

  test('a runner that was drained is unresponsive until it reports that it drains', () => {
    const state = busySet(false);
    state.onDrainRequested([workflowId], [], NOW);
    state.onRunnersListed([one('Busy')], [], NOW);
    expect(known(state)).toEqual([[workflowId, 'draining', 1]]);
    state.onDrainRequested([workflowId], [], NOW);
    expect(setStatus(state, NOW)).toMatchObject({
      runners: [{ drainRequested: { at: '1970-01-01T00:16:40.000Z', times: 2 } }],
      waitingFor: expect.stringContaining(
        '1 runners that were asked to drain and do not: each is asked again every 5m',
      ),
    });
    state.onRunnersListed([one('Draining')], [], NOW);
    expect(known(state)).toEqual([[workflowId, 'draining', undefined]]);
  });

  test('a runner that is online long enough closes the breaker, even if its signal was lost', () => {
    const state = busySet(true);
    const other = runnerWorkflowId('linux', 'bcdefghijk');
    for (const suffix of ['cdefghijkl', 'defghijklm']) {
      const workflowId = runnerWorkflowId('linux', suffix);
      state.onRunnersStarting([{ workflowId }], NOW);
      state.onRunnerEnded(
        {
          workflowId,
          runnerName: workflowId,
          outcome: 'errored',
          cause: 'never_registered',
          wasOnline: false,
          ranJob: false,
          message: 'not <online>',
        },
        NOW,
      );
    }
    state.onRunnersStarting([{ workflowId: other }], NOW);
    expect(setStatus(state, NOW)).toMatchObject({
      blockedReason: 'never_registered ×2',
      lastFailure: { runner: runnerWorkflowId('linux', 'defghijklm'), message: 'not <online>' },
    });
    expect(setDetails(state, NOW)).toMatch(/Last failure \| .*not \\<online/);
    state.onRunnersListed(
      [one('Busy'), one('Registering', { workflowId: other, runnerName: 'other' })],
      [],
      NOW,
    );
    expect(setStatus(state, NOW).blockedReason).toBe('never_registered ×2');
    state.onRunnersListed(
      [one('Busy'), one('Idle', { workflowId: other, runnerName: 'other' })],
      [],
      NOW,
    );
    state.updateDemand(NOW + 9_999);
    expect(setStatus(state, NOW + 9_999).blockedReason).toBe('never_registered ×2');
    state.updateDemand(NOW + 10_000);
    expect(setStatus(state, NOW + 10_000).blockedReason).toBeUndefined();
  });

  test('a missing runner is no proof until Temporal itself confirms its end', () => {
    const state = busySet(true);
    const later = NOW + 3_600_000;
    expect(state.unverified([], later)).toEqual([workflowId]);
    state.onRunnersListed([], [], later);
    expect(known(state)).toEqual([[workflowId, 'busy', undefined]]);
    state.onRunnersListed([], [workflowId], later);
    expect(known(state)).toEqual([]);
  });

  test('a missing runner is judged by the time of the set if a wrong clock moved that ahead of the list’s', () => {
    const state = busySet(true);
    state.updateDemand(NOW + 5_001);
    expect(state.unverified([], NOW - 3_600_000)).toEqual([workflowId]);
  });

  test('requested drains are carried over', () => {
    const state = busySet(false);
    state.onDrainRequested([workflowId], [], NOW);
    const next = nextRun(state);
    expect(next.runners.get(workflowId)).toEqual(state.runners.get(workflowId));
  });
});
