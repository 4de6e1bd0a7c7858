/** Jobs that a set reroutes; none is lost or served by two sets. test/temporal/runnerSetShards.test.ts tests the execution. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JobEvent } from '../../../core/contract/index.ts';
import { JobRouter } from '../../../core/domain/jobRouting.ts';
import { routingInfo } from '../../../core/domain/routingInfo.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import type { SetState } from '../../../workflows/runnerSet/state.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { Fleet, NOW, begin, event } from '../../support/setFleet.ts';
import { nextRun } from '../../support/nextRun.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

describe('sets with equal labels', () => {
  test('with enough runners for all jobs: each job gets one', () => {
    const fleet = new Fleet(
      Array.from({ length: 20 }, (_none, index) => begin(`linux-${index}`, { max: 50 })),
    );
    for (let jobId = 0; jobId < 1_000; jobId++) fleet.deliver(event('queued', jobId));
    expect(Math.max(...fleet.queued())).toBeGreaterThan(50);
    fleet.settle(60);
    expect(fleet.queued()).toEqual(Array.from({ length: 20 }, () => 50));
    expect(sum([...fleet.states.values()].map(({ facts }) => facts.desired))).toBe(1_000);
  });

  test('with too few runners: jobs that no set can serve stay queued where they are, and are shown', () => {
    const fleet = new Fleet([begin('a'), begin('b')]);
    for (let jobId = 0; jobId < 20; jobId++) fleet.deliver(event('queued', jobId));
    fleet.settle();
    expect(sum(fleet.queued())).toBe(20);
    const [status] = [...fleet.states.values()].map((state) => setStatus(state, fleet.now));
    expect(status?.waitingFor).toMatch(
      /another set with room for \d+ jobs that it cannot serve now: asked again until /,
    );
  });

  const STOPPED: [what: string, stop: (state: SetState) => void][] = [
    ['is paused', (state) => state.pause('node work')],
    ['ends', (state) => state.end('moved')],
    [
      'cannot start its runners',
      (state) =>
        Object.assign(state.facts, {
          health: { failures: 2, probes: 0, openedAt: NOW, cause: 'never_registered' },
        }),
    ],
    [
      'has used its time of the day',
      (state) =>
        Object.assign(state.facts, {
          time: { day: Math.floor(NOW / DAY_MS) * DAY_MS, used: 3_600_000, at: NOW, runners: 0 },
        }),
    ],
  ];
  test.each(STOPPED)('a set that %s reroutes its jobs to another', (_what, stop) => {
    const fleet = new Fleet([
      begin('a', { max: 20, limits: { maxRunnerHours: 1 } }),
      begin('b', { max: 20 }),
    ]);
    const first = fleet.states.get('set-a') as SetState;
    stop(first);
    for (let jobId = 0; jobId < 10; jobId++) fleet.deliver(event('queued', jobId));
    fleet.settle(3);
    expect(fleet.queued()).toEqual([0, 10]);
    expect(first.jobs.reroutedCount).toBeGreaterThan(0);
  });

  test('a job that was queued before the memory of the other set is not lost', () => {
    const fleet = new Fleet([begin('a'), begin('b')]);
    const [first, other] = [...fleet.states.values()] as [SetState, SetState];
    // The other set has forgotten a job that completed 8 hours after the event of the waiting one.
    const later = { ...event('queued', 2), at: NOW + 8 * HOUR_MS };
    other.jobReports.onJobEvents([later, { ...later, action: 'completed' }], NOW + 8 * HOUR_MS);
    fleet.now = NOW + 15 * HOUR_MS;
    other.jobs.drop(fleet.now);
    other.jobReports.onJobEvents([event('queued', 1)], fleet.now);
    expect(other.jobs.queued).toBe(0); // as a repeated delivery
    first.pause('node work');
    first.jobReports.onJobEvents([event('queued', 1)], NOW);
    fleet.rerouteJobs('set-a');
    expect(first.jobs.reroutedCount).toBe(1);
    expect(other.jobs.queued).toBe(1);
  });

  test('that both end do not reroute a job back and forth', () => {
    const fleet = new Fleet([begin('a'), begin('b')]);
    for (const state of fleet.states.values()) state.end('moved');
    fleet.deliver(event('queued', 1));
    fleet.look();
    const [before] = [fleet.queued()];
    for (let round = 0; round < 2; round++)
      for (const workflowId of fleet.states.keys()) fleet.rerouteJobs(workflowId);
    expect([
      fleet.queued(),
      ...[...fleet.states.values()].map((state) => decideSet(state, fleet.now).rerouteJobs),
    ]).toEqual([before, false, false]);
  });

  test('a set without an equal one looks for others no more often than it lists its runners', () => {
    const fleet = new Fleet([begin('a')]);
    for (let jobId = 0; jobId < 20; jobId++) fleet.deliver(event('queued', jobId));
    fleet.rerouteJobs('set-a');
    const state = fleet.states.get('set-a') as SetState;
    expect(state.facts.rerouteAt).toBe(NOW + 300_000);
    expect(decideSet(state, NOW + 299_999).rerouteJobs).toBe(false);
  });

  test('a set at its capacity reports that at once, and free capacity only after a while', () => {
    const state = begin('a', { max: 2 });
    const says: [number, boolean][] = [];
    const settle = (seconds: number): void => {
      state.updateDemand(NOW + seconds * 1_000);
      says.push([seconds, state.facts.full]);
    };
    settle(0);
    for (const jobId of [1, 2]) state.jobReports.onJobEvents([event('queued', jobId)], NOW);
    settle(1);
    state.jobReports.onJobEvents([event('completed', 1)], NOW);
    settle(2);
    expect(decideSet(state, NOW + 2_000).wakeAt).toBe(NOW + 17_000);
    settle(16);
    state.jobReports.onJobEvents([event('queued', 3)], NOW);
    settle(16);
    state.jobReports.onJobEvents([event('completed', 2)], NOW);
    settle(20);
    settle(34);
    settle(35);
    expect(says).toEqual([
      [0, false],
      [1, true],
      [2, true],
      [16, true],
      [16, true],
      [20, true],
      [34, true],
      [35, false],
    ]);
    expect(decideSet(state, NOW + 35_000).wakeAt).toBeGreaterThan(NOW + 60_000);
  });

  test('jobs that a limit holds back are not rerouted', () => {
    const fleet = new Fleet([
      begin('a', { max: 20, limits: { perRepository: 1 } }),
      begin('b', { max: 20, limits: { perRepository: 1 } }),
    ]);
    for (let jobId = 0; jobId < 10; jobId++) fleet.deliver(event('queued', jobId));
    const before = fleet.queued();
    fleet.settle(3);
    expect([
      fleet.queued(),
      ...[...fleet.states.values()].map(({ facts }) => facts.desired),
    ]).toEqual([before, 1, 1]);
  });
});

describe('jobs beyond the capacity of a set', () => {
  /** Set a may serve two jobs per repository. It has 10 of one, the newest, and one of each of five others. */
  function crowded(): { fleet: Fleet; a: SetState; at: (name: string) => number } {
    const fleet = new Fleet([
      begin('a', { max: 3, limits: { perRepository: 2 } }),
      begin('b', { max: 20 }),
    ]);
    const a = fleet.states.get('set-a') as SetState;
    a.jobReports.onJobEvents(
      Array.from({ length: 15 }, (_none, jobId) =>
        event('queued', jobId, {
          at: NOW - 15 + jobId,
          repository: jobId < 5 ? `acme/${jobId}` : 'acme/x',
        }),
      ),
      NOW,
    );
    const at = (name: string): number =>
      fleet.states
        .get(`set-${name}`)
        ?.jobs.byRepository(() => false)
        .get('acme/x')?.queued ?? 0;
    return { fleet, a, at };
  }

  test('jobs that a limit holds back stay, also after others of their repository were rerouted', () => {
    const { fleet, a, at } = crowded();
    fleet.rerouteJobs('set-a');
    expect([at('a'), at('b'), ...fleet.queued()]).toEqual([8, 2, 11, 4]);
    fleet.settle();
    expect([at('a'), at('b'), ...fleet.queued()]).toEqual([8, 2, 11, 4]);
    expect([a.facts.desired, decideSet(a, fleet.now).rerouteJobs]).toEqual([3, false]);
  });

  test('rerouted jobs count for the limit until they have ended, and then the next may follow', () => {
    const { fleet, a, at } = crowded();
    const told = (action: JobEvent['action']): [number, number] => {
      a.jobReports.onJobEvents(
        [5, 6].map((jobId) =>
          event(action, jobId, { repository: 'acme/x', runnerName: 'mac-abcdefghij-0a1b2c3d4e' }),
        ),
        fleet.now,
      );
      fleet.settle(3);
      return [at('a'), at('b')];
    };
    fleet.rerouteJobs('set-a');
    expect([told('in_progress'), told('completed')]).toEqual([
      [8, 0],
      [6, 2],
    ]);
  });

  test('jobs of another set that were rerouted again do not count for the limit', () => {
    const fleet = new Fleet([
      begin('a', { limits: { perRepository: 1 }, paused: true }),
      begin('b'),
    ]);
    const a = fleet.states.get('set-a') as SetState;
    a.jobReports.onJobEvents([event('queued', 1, { reroutedBy: 'set-b' })], NOW);
    fleet.rerouteJobs('set-a');
    a.resume();
    a.jobReports.onJobEvents([event('queued', 2)], NOW);
    a.updateDemand(NOW);
    expect([a.jobs.reroutedCount, a.facts.desired]).toEqual([0, 1]);
  });

  test('a set that ends reroutes all jobs to another, independent of its limits', () => {
    const { fleet, a } = crowded();
    a.end('moved');
    fleet.settle(10);
    expect(fleet.queued()).toEqual([0, 15]);
  });
});

describe('an event of a rerouted job', () => {
  /** Set a is at its capacity with one job and has rerouted another to b. */
  function two(): { fleet: Fleet; a: SetState; b: SetState; kept: number; rerouted: number } {
    const fleet = new Fleet([begin('a', { max: 1 }), begin('b', { max: 100 })]);
    const [a, b] = [...fleet.states.values()] as [SetState, SetState];
    const routing = new JobRouter(fleet.listed);
    const ids = Array.from({ length: 100 }, (_none, jobId) => jobId)
      .filter(
        (jobId) =>
          routing.setFor(event('queued', jobId), { ciServer: 'github' })?.workflowId === 'set-a',
      )
      .slice(0, 2);
    for (const jobId of ids) fleet.deliver(event('queued', jobId));
    fleet.settle(1);
    const rerouted =
      ids.find((jobId) => a.jobs.get(event('queued', jobId))?.reroutedTo !== undefined) ?? -1;
    expect([a.jobs.queued, a.jobs.reroutedCount, b.jobs.queued]).toEqual([1, 1, 1]);
    return { fleet, a, b, kept: ids.find((jobId) => jobId !== rerouted) ?? -1, rerouted };
  }

  test.each<
    [what: string, change: Partial<JobEvent> & Pick<JobEvent, 'action'>, forwarded: boolean]
  >([
    [
      'it runs on a foreign runner',
      { action: 'in_progress', runnerName: 'mac-abcdefghij-0a1b2c3d4e' },
      true,
    ],
    [
      'it runs on a runner of the set that rerouted it',
      { action: 'in_progress', runnerName: 'a-abcdefghij-0a1b2c3d4e' },
      true,
    ],
    [
      'it runs on a runner of the set that has it, which gets the event anyway',
      { action: 'in_progress', runnerName: 'b-abcdefghij-0a1b2c3d4e' },
      false,
    ],
    ['it was cancelled', { action: 'completed' }, true],
  ])('%s', (_what, change, forwarded) => {
    const { fleet, a, b, rerouted } = two();
    const { action, ...more } = change;
    fleet.deliver(event(action, rerouted, more));
    expect(decideSet(a, fleet.now).rerouteJobs).toBe(forwarded);
    fleet.rerouteJobs('set-a');
    expect(b.jobs.queued).toBe(forwarded ? 0 : 1);
    // A repeated event is not forwarded again.
    fleet.deliver(event(action, rerouted, more));
    expect(decideSet(a, fleet.now).rerouteJobs).toBe(false);
  });

  test('that arrives while it is being rerouted is forwarded after it', () => {
    for (const action of ['in_progress', 'completed'] as const) {
      const fleet = new Fleet([begin('a', { paused: true }), begin('b', { max: 100 })]);
      const [a, b] = [...fleet.states.values()] as [SetState, SetState];
      const routing = new JobRouter(fleet.listed);
      const jobId =
        Array.from({ length: 100 }, (_none, index) => index).find(
          (index) =>
            routing.setFor(event('queued', index), { ciServer: 'github' })?.workflowId === 'set-a',
        ) ?? -1;
      fleet.deliver(event('queued', jobId));
      fleet.rerouteJobs('set-a', () =>
        a.jobReports.onJobEvents(
          [event(action, jobId, { runnerName: 'mac-abcdefghij-0a1b2c3d4e' })],
          fleet.now,
        ),
      );
      expect(b.jobs.queued).toBe(1);
      fleet.rerouteJobs('set-a');
      expect([a.jobs.queued, b.jobs.queued]).toEqual([0, 0]);
    }
  });

  test('a job that is rerouted back while it is being rerouted is queued here again, and not rerouted at once', () => {
    for (const names of [
      ['a', 'b'],
      ['a', 'b', 'c'],
    ]) {
      const fleet = new Fleet(names.map((name) => begin(name)));
      const a = fleet.states.get('set-a') as SetState;
      a.jobReports.onJobEvents([event('queued', 1)], NOW);
      for (const state of fleet.states.values()) state.pause('');
      // Each set regards the next one as the only one with capacity.
      const pass = ([from = 'set-a', ...rest]: string[]): void => {
        fleet.listed = [...fleet.states].map(([workflowId, { facts }]) => ({
          workflowId,
          routing: routingInfo(facts.spec, workflowId !== (rest[0] ?? 'set-a')),
        }));
        fleet.rerouteJobs(from, () => (rest.length === 0 ? undefined : pass(rest)));
      };
      pass([...fleet.states.keys()]);
      expect(fleet.queued()).toEqual(names.map((name) => (name === 'a' ? 1 : 0)));
      expect([a.jobs.reroutedCount, a.facts.rerouteAt]).toEqual([0, fleet.now + 15_000]);
    }
  });

  test('of a job that came back is not sent to the set that rerouted it back, which no longer shows it', () => {
    const { fleet, a, b, kept, rerouted } = two();
    b.pause('');
    a.jobReports.onJobEvents([event('completed', kept)], fleet.now);
    fleet.settle(3);
    expect([a.jobs.queued, b.jobs.queued, b.jobs.reroutedCount]).toEqual([1, 0, 0]);
    fleet.deliver(event('in_progress', rerouted, { runnerName: 'a-abcdefghij-0a1b2c3d4e' }));
    fleet.settle(3);
    expect([a.jobs.queued, a.jobs.reroutedCount, b.jobs.reroutedCount]).toEqual([0, 0, 0]);
  });

  test('the next run knows the set that has the job, and the events to forward', () => {
    const { fleet, a, b, rerouted } = two();
    a.jobReports.onJobEvents([event('completed', rerouted)], fleet.now);
    fleet.states.set('set-a', nextRun(a));
    fleet.states.set('set-b', nextRun(b));
    fleet.rerouteJobs('set-a');
    expect(fleet.queued()).toEqual([1, 0]);
  });

  test('a check finds that the set with the job has ended: the job is queued here again', () => {
    const { fleet, a, rerouted } = two();
    const look = (endedSets: string[]): void =>
      a.jobReports.onQueueChecked(
        {
          checkedAt: fleet.now,
          complete: true,
          absent: [],
          endedSets,
          jobs: [1, 2]
            .map((one) => (one === 1 ? rerouted : firstOf(a, rerouted)))
            .map((id) => ({
              id: String(id),
              runAttempt: 1,
              repository: 'acme/app',
              labels: [],
              status: 'queued' as const,
              queuedAt: NOW,
            })),
        },
        fleet.now,
      );
    look([]);
    expect([a.jobs.queued, a.jobs.reroutedCount]).toEqual([1, 1]);
    look(['set-b']);
    expect([a.jobs.queued, a.jobs.reroutedCount]).toEqual([2, 0]);
  });

  test('a job of another set that was rerouted from here to a set that has ended is queued here again as a job of the other set', () => {
    const fleet = new Fleet([begin('a', { paused: true }), begin('b')]);
    const a = fleet.states.get('set-a') as SetState;
    a.jobReports.onJobEvents([event('queued', 1, { reroutedBy: 'set-c' })], NOW);
    fleet.rerouteJobs('set-a');
    expect(a.jobs.rerouted()).toEqual({ here: [], to: ['set-b'] });
    a.jobs.reclaim(new Set(['set-d']), NOW);
    expect(a.jobs.rerouted()).toEqual({ here: [], to: ['set-b'] });
    a.jobs.reclaim(new Set(['set-b']), NOW);
    expect(a.jobs.rerouted()).toEqual({ here: ['1/1'], to: [] });
  });
  const firstOf = (a: SetState, rerouted: number): number =>
    Number(
      a.jobs
        .lastQueued(10)
        .map(({ key }) => key.split('/')[0])
        .find((id) => Number(id) !== rerouted),
    );
});

test('for all events in every order: every queued job is in exactly one set, and all others are in none', () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('queued' as const), job: fc.nat(40) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('in_progress' as const, 'completed' as const),
        job: fc.nat(40),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom(
          'pass' as const,
          'pause' as const,
          'resume' as const,
          'renew' as const,
        ),
        job: fc.nat(3),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('look' as const), job: fc.constant(0) }),
    },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const fleet = new Fleet(['a', 'b', 'c', 'd'].map((name) => begin(name)));
      const truth = new Map<number, JobEvent['action']>();
      const ORDER = ['queued', 'in_progress', 'completed'];
      for (const { kind, job } of steps) {
        const [workflowId, state] = [...fleet.states][job % 4] as [string, SetState];
        if (kind === 'pass') fleet.rerouteJobs(workflowId);
        else if (kind === 'pause') state.pause('');
        else if (kind === 'resume') state.resume();
        else if (kind === 'renew') fleet.states.set(workflowId, nextRun(state));
        else if (kind === 'look') fleet.look();
        else {
          const known = truth.get(job);
          if (known === undefined || ORDER.indexOf(kind) > ORDER.indexOf(known))
            truth.set(job, kind);
          fleet.deliver(
            event(kind, job, kind === 'queued' ? {} : { runnerName: 'mac-abcdefghij-0a1b2c3d4e' }),
          );
        }
        fleet.now += 1_000;
      }
      fleet.settle(12);
      const waiting = [...truth.values()].filter((action) => action === 'queued').length;
      expect(sum(fleet.queued())).toBe(waiting);
      expect(
        sum([...fleet.states.values()].map(({ jobs }) => jobs.reroutedCount)),
      ).toBeLessThanOrEqual(waiting);
    }),
    { numRuns: 150 },
  );
});
