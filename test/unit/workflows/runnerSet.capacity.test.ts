import { describe, expect, test } from '@jest/globals';
import type { RunnerSetInput, ScaleSetReport } from '../../../core/contract/index.ts';
import { runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import { parseRunnerSetInput } from '../../../core/input/runnerSet.ts';
import {
  decideCapacity,
  nextObservationAt,
  restoreCapacity,
  type ClusterLimit,
  type LimitFacts,
} from '../../../workflows/runnerSet/capacity.ts';
import { currentPlan, decideSet } from '../../../workflows/runnerSet/decide.ts';
import { advertisedCapacity, jobsOverCapacity } from '../../../workflows/runnerSet/size.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { nextRun } from '../../support/nextRun.ts';

const NOW = 10_000_000;
const CPU = 'pods unschedulable (Insufficient cpu)';

/** A runner that was started and first seen without a node the given seconds ago. */
const waiting = (workflowId: string, startedAgo: number, seenAgo?: number) => ({
  workflowId,
  startedAt: NOW - startedAgo * 1_000,
  ...(seenAgo === undefined ? {} : { noNode: { since: NOW - seenAgo * 1_000, reason: CPU } }),
});
const limit = (more: Partial<ClusterLimit> = {}): ClusterLimit => ({
  limit: 10,
  probe: 1,
  reason: CPU,
  since: NOW - 60_000,
  stuckAt: NOW - 1_000,
  ...more,
});

describe('the limit of the cluster after an observation', () => {
  test.each<[string, Partial<LimitFacts>, Partial<ClusterLimit> | undefined, withdraw: string[]]>([
    ['all runners have a node', { placed: 5 }, undefined, []],
    ['the scheduler has no result yet', { waiting: [waiting('a', 30)] }, undefined, []],
    ['a runner has just found no node', { waiting: [waiting('a', 12, 9)] }, undefined, []],
    [
      'runners remain without a node',
      { placed: 7, waiting: [waiting('a', 20, 15), waiting('b', 16, 11), waiting('c', 18, 13)] },
      { limit: 7, probe: 1, reason: CPU, since: NOW, stuckAt: NOW },
      ['c', 'a'],
    ],
    [
      'the probe is old',
      { before: limit(), placed: 10, waiting: [waiting('a', 45, 40)] },
      { limit: 10, probe: 0, since: NOW - 60_000, resumeAt: NOW + 10_000 },
      ['a'],
    ],
    [
      'the probe is old, and its pod is new, because it waited for its registration',
      { before: limit(), placed: 10, waiting: [waiting('a', 120, 34), waiting('b', 110, 36)] },
      { limit: 10, probe: 1 },
      ['b'],
    ],
    [
      'the cluster has less capacity than before',
      { before: limit(), placed: 4, waiting: [waiting('a', 20, 15)] },
      { limit: 4, probe: 1, since: NOW - 60_000 },
      [],
    ],
    [
      'the pause continues',
      { before: limit({ probe: 0, resumeAt: NOW + 1 }), placed: 10 },
      { limit: 10, probe: 0, resumeAt: NOW + 1 },
      [],
    ],
    [
      'the pause is over',
      { before: limit({ probe: 0, resumeAt: NOW }), placed: 10 },
      { limit: 10, probe: 1 },
      [],
    ],
    ['the probe has a node', { before: limit(), placed: 11 }, { limit: 11, probe: 2 }, []],
    [
      'one of two probes has a node',
      { before: limit({ probe: 2 }), placed: 11, waiting: [waiting('a', 5, 3)] },
      { limit: 11, probe: 2 },
      [],
    ],
    [
      'many probes have a node',
      { before: limit({ probe: 8 }), placed: 18 },
      { limit: 18, probe: 8 },
      [],
    ],
    ['there is capacity for all', { before: limit(), placed: 50 }, undefined, []],
    [
      'the capacity is used, and a rollout needs one more runner',
      { placed: 50, waiting: [waiting('a', 30, 20)] },
      undefined,
      [],
    ],
    [
      'no runner was without a node for long enough',
      { before: limit({ stuckAt: NOW - 600_000 }), placed: 3 },
      undefined,
      [],
    ],
  ])('%s', (_when, facts, expected, withdraw) => {
    const decision = decideCapacity(
      { before: undefined, placed: 0, waiting: [], max: 50, ...facts },
      NOW,
    );
    expect(decision.withdraw).toEqual(withdraw);
    // An absent limit has no fields.
    expect(decision.limit ?? {}).toMatchObject(expected ?? {});
    expect(decision.limit === undefined).toBe(expected === undefined);
    expect(decision.limit?.probe === 0).toBe(decision.limit?.resumeAt !== undefined);
  });

  test('the state that a previous run carried over is limited', () => {
    const carried = limit({ since: NOW * 9, probe: 5_000 });
    const restored = (facts: object): object =>
      restoreCapacity(facts, { now: NOW - 7, latest: NOW });
    expect(restored({ clusterLimit: carried, observedAt: NOW * 9, placed: 3 })).toEqual({
      clusterLimit: { ...carried, since: NOW, probe: 8 },
      observedAt: NOW - 7,
      placed: 3,
    });
    expect(restored({ observedAt: 'x', placed: -1 })).toEqual({});
    for (const damaged of [
      undefined,
      'x',
      {},
      { ...carried, limit: -1 },
      { ...carried, since: '' },
    ])
      expect(restored({ clusterLimit: damaged })).toEqual({});
  });
});

describe('the next observation', () => {
  const NEVER = Number.POSITIVE_INFINITY;
  const starting = (ago: number) => ({ state: 'starting', startedAt: NOW - ago * 1_000 }) as const;
  test.each<[string, Parameters<typeof nextObservationAt>[0], number]>([
    ['no runner starts', { limit: undefined, observedAt: NOW, runners: [] }, NEVER],
    [
      'a runner has just started',
      { limit: undefined, observedAt: undefined, runners: [starting(0)] },
      NOW + 5_000,
    ],
    [
      'a runner that has started has a node',
      { limit: undefined, observedAt: NOW, runners: [{ ...starting(9), hasNode: true }] },
      NEVER,
    ],
    [
      'a runner has been starting for long',
      { limit: undefined, observedAt: NOW - 1_000, runners: [starting(60)] },
      NOW + 4_000,
    ],
    [
      'a probe has just started',
      { limit: limit(), observedAt: NOW - 60_000, runners: [starting(0)] },
      NOW + 1_000,
    ],
    ['a probe waits', { limit: limit(), observedAt: NOW, runners: [starting(5)] }, NOW + 2_000],
    [
      'a probe has been waiting for long',
      { limit: limit(), observedAt: NOW, runners: [starting(20)] },
      NOW + 5_000,
    ],
    [
      'a probe was online before it was observed',
      {
        limit: limit(),
        observedAt: NOW - 9_000,
        runners: [{ state: 'busy', startedAt: NOW - 30_000 }],
      },
      NOW - 7_000,
    ],
    [
      'the next probe is due',
      { limit: limit({ probe: 0, resumeAt: NOW + 7 }), observedAt: NOW - 9_000, runners: [] },
      NOW + 7,
    ],
    [
      'there is no demand for a probe',
      { limit: limit(), observedAt: NOW, runners: [] },
      limit().stuckAt + 600_000,
    ],
  ])('%s', (_when, facts, expected) => {
    expect(nextObservationAt(facts, NOW)).toBe(expected);
  });
});

const INPUT: RunnerSetInput = {
  name: 'gpu',
  max: 50,
  capacity: 'observed',
  template: { organization: 'acme', labels: ['gpu'], demand: 'scaleSet' },
};

const nameOf = (workflowId: string): string => `${workflowId.slice('runner-'.length)}-0123456789`;

interface Pod {
  readonly createdAt: number;
  node?: true;
  endsAt?: number;
}

/** A set, and a cluster with capacity for some pods. Its time passes in steps of half a second. */
class Cluster {
  now = NOW;
  room = 10;
  assigned = 0;
  jobMs = Number.POSITIVE_INFINITY;
  longestPendingMs = 0;
  observations = 0;
  drainedWithNode = 0;
  readonly pods = new Map<string, Pod>();
  readonly state: SetState;
  #started = 0;
  #messages = 0;

  constructor(input: RunnerSetInput = INPUT) {
    const parsed = parseRunnerSetInput(input, { hash: () => 'h', checkSchedule: () => undefined });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
    const { runner: _runner, ...spec } = parsed.spec;
    this.state = SetState.begin(spec, input, {}, NOW);
    this.state.onListenerStarted(NOW);
  }

  get placed(): number {
    return [...this.pods.values()].filter(({ node }) => node === true).length;
  }

  pass(seconds: number): void {
    for (let step = 0; step < 2 * seconds; step++) {
      this.now += 500;
      this.#end();
      this.#schedule();
      this.#report({});
      this.state.updateDemand(this.now);
      for (let action = 0; action < 5; action++) this.#act();
    }
  }

  #report(events: Partial<Pick<ScaleSetReport, 'started' | 'completed'>>): void {
    const { assigned, placed: running, now } = this;
    const position = { openedAt: 1, messageId: ++this.#messages };
    this.state.jobReports.onScaleSetReport(
      { at: now, position, numbers: { assigned, running }, started: [], completed: [], ...events },
      now,
    );
  }

  #act(): void {
    const { state, now } = this;
    state.updateDemand(now);
    const decision = decideSet(state, now);
    if (decision.listRunners) {
      state.onListStarted(now);
      state.onRunnersListed(state.runners.asListed(), [], now);
    } else if (decision.observe) this.#observe();
    else if (decision.start > 0) {
      const started = Array.from({ length: decision.start }, () => ({
        workflowId: runnerWorkflowId('gpu', String(this.#started++).padStart(10, 'a')),
      }));
      state.onRunnersStarting(started, now);
      for (const { workflowId } of started) this.pods.set(workflowId, { createdAt: now });
    } else
      for (const { workflowId } of decision.drain) {
        state.onDrainRequested([workflowId], [], now);
        if (this.pods.get(workflowId)?.node === true) this.drainedWithNode++;
        this.#remove(workflowId, 'aborted');
      }
  }

  #observe(): void {
    this.observations++;
    const asked = this.state.observer.onStarted(this.now);
    const unplaced = asked
      .filter((workflowId) => this.pods.get(workflowId)?.node !== true)
      .map((workflowId) => ({ workflowId, reason: CPU }));
    this.state.observer.onObserved(
      asked,
      { at: this.now, placed: this.placed, unplaced },
      this.now,
    );
  }

  #schedule(): void {
    for (const [workflowId, pod] of this.pods) {
      if (pod.node === true) continue;
      this.longestPendingMs = Math.max(this.longestPendingMs, this.now - pod.createdAt);
      if (this.placed >= this.room) continue;
      Object.assign(pod, { node: true, endsAt: this.now + this.jobMs });
      const runnerName = nameOf(workflowId);
      this.state.onRunnerOnline({ workflowId, runnerName }, this.now);
      this.#report({ started: [runnerName] });
    }
  }

  #end(): void {
    for (const [workflowId, { endsAt = Number.POSITIVE_INFINITY }] of this.pods)
      if (endsAt <= this.now) {
        this.assigned--;
        this.#report({ completed: [nameOf(workflowId)] });
        this.#remove(workflowId, 'succeeded');
      }
  }

  #remove(workflowId: string, outcome: 'succeeded' | 'aborted'): void {
    this.pods.delete(workflowId);
    const ranJob = outcome === 'succeeded';
    this.state.onRunnerEnded(
      { workflowId, runnerName: nameOf(workflowId), outcome, wasOnline: ranJob, ranJob },
      this.now,
    );
  }
}

describe('a set in a cluster with capacity for fewer runners than its maximum', () => {
  test('runs as many runners as possible, and no pod is pending for a minute', () => {
    const cluster = new Cluster();
    cluster.assigned = 50;
    cluster.pass(60);
    for (let minute = 0; minute < 10; minute++) {
      cluster.pass(60);
      expect(Math.abs(advertisedCapacity(cluster.state) - 10)).toBeLessThanOrEqual(1);
      expect(cluster.placed).toBe(10);
    }
    expect(cluster.longestPendingMs).toBeLessThanOrEqual(55_000);
    expect(cluster.drainedWithNode).toBe(0);
    expect(setStatus(cluster.state, cluster.now)).toMatchObject({
      max: 50,
      clusterLimit: { limit: 10, reason: CPU },
      waits: expect.arrayContaining([
        expect.objectContaining({
          cause: 'capacity',
          text: expect.stringMatching(/^capacity 10 of 50: .*Insufficient cpu.* since 19/),
        }),
      ]),
    });
  });

  test.each([0, 3, 7, 13, 20, 31, 44, 51])(
    'uses capacity for 20 more runners within 30 s, %d s after the first minutes',
    (seconds) => {
      const cluster = new Cluster();
      cluster.assigned = 50;
      cluster.pass(120 + seconds);
      cluster.room = 30;
      cluster.pass(30);
      expect(cluster.placed).toBe(30);
      cluster.pass(60);
      expect(Math.abs(advertisedCapacity(cluster.state) - 30)).toBeLessThanOrEqual(1);
      expect(cluster.longestPendingMs).toBeLessThanOrEqual(55_000);
    },
  );

  test('follows a cluster that loses capacity while jobs end', () => {
    const cluster = new Cluster();
    Object.assign(cluster, { assigned: 5_000, jobMs: 20_000 });
    cluster.pass(120);
    cluster.room = 4;
    cluster.pass(90);
    expect(cluster.placed).toBe(4);
    expect(Math.abs(advertisedCapacity(cluster.state) - 4)).toBeLessThanOrEqual(1);
  });

  test('has no limit if there is capacity for all, and rarely observes the cluster', () => {
    const cluster = new Cluster();
    Object.assign(cluster, { room: 100, assigned: 5_000, jobMs: 20_000 });
    cluster.pass(300);
    expect(cluster.state.facts.clusterLimit).toBeUndefined();
    expect(cluster.observations).toBe(0);
    expect(advertisedCapacity(cluster.state)).toBe(50);
  });

  test('does not observe the cluster with capacity static', () => {
    const { capacity: _observed, ...input } = INPUT;
    const cluster = new Cluster(input);
    cluster.assigned = 50;
    cluster.pass(120);
    expect([cluster.observations, cluster.pods.size]).toEqual([0, 50]);
    expect(advertisedCapacity(cluster.state)).toBe(50);
  });

  test('another template is started without the limit', () => {
    const cluster = new Cluster();
    cluster.assigned = 50;
    cluster.pass(60);
    const { spec } = cluster.state.facts;
    expect(cluster.state.facts.clusterLimit).toBeDefined();
    cluster.state.declare({ ...spec, templateHash: 'other' }, INPUT, {}, cluster.now, cluster.now);
    expect(cluster.state.facts.clusterLimit).toBeUndefined();
  });
});

test('a set that gets job events reroutes the jobs that exceed the capacity of the cluster', () => {
  const template = { organization: 'acme', labels: ['gpu'] };
  const { state, ...cluster } = new Cluster({ ...INPUT, template });
  const events = Array.from({ length: 12 }, (_none, index) => ({
    action: 'queued' as const,
    jobId: String(index + 1),
    runAttempt: 1,
    repository: 'acme/web',
    labels: ['gpu'],
    at: NOW,
  }));
  state.jobReports.onJobEvents(events, NOW);
  state.updateDemand(NOW);
  expect([cluster.room, jobsOverCapacity(state), state.facts.full]).toEqual([10, 0, false]);
  state.facts.clusterLimit = limit();
  state.updateDemand(NOW);
  expect([jobsOverCapacity(state), state.facts.full]).toEqual([1, true]);
});

describe('the runners of a limited set', () => {
  const ids = (count: number): string[] =>
    Array.from({ length: count }, (_none, index) =>
      runnerWorkflowId('gpu', String(index).padStart(10, 'a')),
    );

  /** Returns a set with this many starting runners, of which the last observation saw some. */
  function starting(count: number): SetState {
    const { state } = new Cluster();
    state.onRunnersListed([], [], NOW);
    state.onRunnersStarting(
      ids(count).map((workflowId) => ({ workflowId })),
      NOW,
    );
    return state;
  }
  function observe(state: SetState, placed: readonly string[], now: number): void {
    const asked = state.observer.onStarted(now);
    const unplaced = asked
      .filter((workflowId) => !placed.includes(workflowId))
      .map((workflowId) => ({ workflowId, reason: CPU }));
    state.observer.onObserved(asked, { at: now, placed: placed.length, unplaced }, now);
  }
  const withdrawn = (state: SetState): string[] =>
    state.runners.all().flatMap((one) => (one.withdrawn === true ? [one.workflowId] : []));

  test('a fixed number by a schedule does not follow the cluster', () => {
    const state = starting(3);
    const { spec } = state.facts;
    const bounds = { kind: 'fixed', replicas: 3, replaceAhead: 0 } as const;
    const schedules = [{ cron: '0 8 * * *', timeZone: 'UTC', durationMs: 1, bounds }];
    expect(decideSet(state, NOW + 60_000).observe).toBe(true);
    state.declare({ ...spec, schedules }, INPUT, { index: 0 }, NOW, NOW);
    expect(decideSet(state, NOW + 60_000).observe).toBe(false);
    observe(state, [], NOW);
    observe(state, [], NOW + 20_000);
    expect([state.facts.clusterLimit, withdrawn(state)]).toEqual([undefined, []]);
  });

  test('the next run observes the cluster with every carried time', () => {
    const state = starting(3);
    state.facts.observedAt = Number.MAX_SAFE_INTEGER;
    expect(decideSet(nextRun(state), NOW + 60_000).observe).toBe(true);
  });

  test('runners that are not going to leave do not count as waiting for a node', () => {
    const state = starting(4);
    const [held = '', gone = '', ...old] = ids(4);
    state.holds.add(held);
    Object.assign(state.runners.get(gone) ?? {}, { withdrawn: true });
    for (const workflowId of old)
      Object.assign(state.runners.get(workflowId) ?? {}, { templateHash: 'old' });
    observe(state, [], NOW);
    observe(state, [], NOW + 20_000);
    expect(state.facts.clusterLimit).toBeUndefined();
    state.holds.release(held);
    observe(state, [], NOW + 22_000);
    expect(state.facts.clusterLimit).toMatchObject({ limit: 0, probe: 1 });
  });

  test('a withdrawn runner that gets a node stays', () => {
    const state = starting(2);
    const [first = '', second = ''] = ids(2);
    observe(state, [], NOW);
    observe(state, [], NOW + 20_000);
    expect(withdrawn(state)).toEqual([second]);
    expect(withdrawn(nextRun(state))).toEqual([second]);
    observe(state, [first, second], NOW + 22_000);
    expect([withdrawn(state), withdrawn(nextRun(state))]).toEqual([[], []]);
  });

  test('the next run continues the measurement of the last one', () => {
    const state = starting(3);
    const [first = '', second = '', third = ''] = ids(3);
    observe(state, [first], NOW);
    state.updateDemand(NOW + 5_000);
    const next = nextRun(state);
    expect(next.runners.all()).toEqual(state.runners.all());
    expect(next.runners.get(first)?.hasNode).toBe(true);
    // Without a node for 10 seconds in total: the limit applies, and one runner stays as a probe.
    observe(next, [first], NOW + 10_000);
    expect(next.facts.clusterLimit).toMatchObject({ limit: 1, probe: 1, reason: CPU });
    expect(withdrawn(next)).toHaveLength(1);
    expect([second, third]).toContain(withdrawn(next)[0]);
  });

  test.each<[since: unknown, reasons: unknown]>([
    [9e15, ['x'.repeat(1_000)]],
    ['x', [7]],
    [-9e15, {}],
    [{}, 'x'],
    [null, null],
  ])('a carried record that is without a node since %j does not stop the set', (since, reasons) => {
    const state = starting(1);
    observe(state, [], NOW);
    state.updateDemand(NOW);
    const carried = JSON.parse(JSON.stringify(state.carry()));
    carried.runners.runners[0].splice(11, 2, since, 1);
    carried.runners.reasons = reasons;
    state.carry = () => carried;
    const next = nextRun(state);
    for (const { noNode } of next.runners.all()) {
      expect(noNode?.since ?? NOW).toBeLessThanOrEqual(NOW);
      expect(noNode?.reason.length ?? 0).toBeLessThanOrEqual(300);
    }
    observe(next, [], NOW + 5_000);
    expect(next.facts.clusterLimit?.limit ?? 0).toBe(0);
  });

  test.each([['x'], [true], [2], [-1]])(
    'a carried record with %j does not withdraw a runner',
    (flag) => {
      const state = starting(1);
      Object.assign(state.runners.get(ids(1)[0] ?? '') ?? {}, { withdrawn: true });
      const carried = JSON.parse(JSON.stringify(state.carry()));
      carried.runners.runners[0][10] = flag;
      state.carry = () => carried;
      expect(withdrawn(nextRun(state))).toEqual([]);
    },
  );

  test('the replacement of a lost runner is not withdrawn', () => {
    const state = starting(1);
    const [workflowId = ''] = ids(1);
    const runner = state.runners.get(workflowId);
    state.onRunnerOnline({ workflowId, runnerName: 'gpu-1' }, NOW);
    Object.assign(runner ?? {}, { withdrawn: true, noNode: { since: NOW, reason: CPU } });
    state.onRunnerOnline({ workflowId, runnerName: 'gpu-2' }, NOW);
    expect([runner?.runnerName, runner?.withdrawn, runner?.noNode]).toEqual([
      'gpu-2',
      undefined,
      undefined,
    ]);
  });

  test('surplus runners of a burst leave at once, those without a node first', () => {
    const state = starting(30);
    const placed = ids(30).slice(-10);
    Object.assign(state.facts, { desired: 30 });
    observe(state, placed, NOW);
    state.updateDemand(NOW + 1_000);
    const { bounds, ...spec } = state.facts.spec;
    for (const max of [5, 50]) {
      state.facts.spec = { ...spec, bounds: { ...bounds, kind: 'elastic', minIdle: 0, max } };
      expect(currentPlan(state, NOW + 1_000)).toMatchObject({ drain: [], excess: 30 });
    }
    state.facts.clusterLimit = limit();
    const { drain, excess } = currentPlan(state, NOW + 1_000);
    const leaving = drain.map(({ workflowId }) => workflowId);
    expect([leaving.length, excess]).toEqual([19, 11]);
    expect(leaving.filter((workflowId) => placed.includes(workflowId))).toEqual([]);
    state.onDrainRequested(leaving, [], NOW + 1_000);
    expect(advertisedCapacity(state)).toBe(11);
  });

  test.each([
    [9, false],
    [10, true],
  ])('with %d jobs and capacity for 10, the wait for capacity is shown: %p', (jobs, isShown) => {
    const { state } = new Cluster();
    state.facts.clusterLimit = limit();
    const numbers = { assigned: jobs, running: 0 };
    const position = { openedAt: 1, messageId: 1 };
    state.jobReports.onScaleSetReport(
      { at: NOW, position, numbers, started: [], completed: [] },
      NOW,
    );
    state.updateDemand(NOW);
    const { waits = [] } = setStatus(state, NOW);
    expect(waits.some(({ cause }) => cause === 'capacity')).toBe(isShown);
  });
});
