import { describe, expect, test } from '@jest/globals';
import {
  HEALTHY,
  recordEnd,
  recordReady,
  startAllowance,
  type SetHealth,
} from '../../../workflows/runnerSet/breaker.ts';
import { planSet, type PlanFacts, type PlannedRunner } from '../../../workflows/runnerSet/plan.ts';
import {
  randomSuffix,
  runnerSuffix,
  runnerWorkflowIdFromName,
} from '../../../core/domain/setRunnerNames.ts';
import {
  desiredSize,
  keepsIdleRunners,
  minAndMax,
  maxPods,
  toBounds,
} from '../../../core/domain/scale.ts';

/** `new/idle@3!`: generation/state@age, `!` held, `*` static, `?` asked to drain without a response, `~` online and not ready, `-` withdrawn. */
function runners(...shorthand: string[]): PlannedRunner[] {
  return shorthand.map((text, index) => {
    const [, templateHash = '', state = '', age = `${index}`, flags = ''] =
      /^(\w+)\/(\w+)(?:@(\d+))?([!*?~-]*)$/.exec(text) ?? [];
    return {
      workflowId: `r${index}`,
      templateHash,
      state: state as PlannedRunner['state'],
      startedAt: 1_000 + Number(age),
      onHold: flags.includes('!'),
      ready: /idle|busy/.test(state) && !flags.includes('~'),
      ephemeral: !flags.includes('*'),
      unresponsive: flags.includes('?'),
      withdrawn: flags.includes('-'),
    };
  });
}

const facts = (more: Partial<PlanFacts> & { runners?: readonly PlannedRunner[] }): PlanFacts => ({
  runners: [],
  templateHash: 'new',
  desired: 0,
  maxRunners: Number.POSITIVE_INFINITY,
  guardedRunners: 0,
  maxStarts: Number.POSITIVE_INFINITY,
  maxSurge: 1,
  recentPeak: 0,
  mode: 'run',
  ...more,
});

describe('the plan of a set', () => {
  const NEVER = Number.POSITIVE_INFINITY;
  test.each<
    [
      string,
      Partial<PlanFacts>,
      { start: number; drain: string[]; excess?: number; withheld?: number; crowded?: number },
    ]
  >([
    [
      'starts missing runners at once',
      { desired: 3, runners: runners('new/busy'), recentPeak: NEVER },
      { start: 2, drain: [] },
    ],
    [
      'draining runners do not count in a fixed number',
      { desired: 2, runners: runners('new/draining', 'new/idle') },
      { start: 1, drain: [] },
    ],
    [
      'with a maximum draining runners count until they are gone',
      { desired: 2, maxRunners: 2, runners: runners('new/draining', 'new/idle') },
      { start: 0, drain: [], crowded: 1 },
    ],
    [
      'with a maximum starting runners count, held or not',
      {
        desired: 4,
        maxRunners: 4,
        runners: runners('new/starting', 'new/starting!', 'new/draining'),
      },
      { start: 1, drain: [], crowded: 1 },
    ],
    [
      'withdrawn runners do not count, draining or not, unless they are online',
      {
        desired: 4,
        maxRunners: 4,
        runners: runners('new/starting-!', 'new/draining-', 'new/draining', 'new/busy'),
      },
      { start: 2, drain: [] },
    ],
    [
      'a lowered maximum starts no runner',
      {
        desired: 2,
        maxRunners: 2,
        runners: runners('new/draining', 'new/draining', 'new/draining'),
      },
      { start: 0, drain: [], crowded: 2 },
    ],
    [
      'the maximum applies first, then the guarded runners',
      {
        desired: 4,
        maxRunners: 4,
        guardedRunners: 1,
        runners: runners('new/draining', 'new/busy'),
      },
      { start: 1, drain: [], withheld: 1, crowded: 1 },
    ],
    [
      'a starting runner counts',
      { desired: 1, runners: runners('new/starting') },
      { start: 0, drain: [] },
    ],
    [
      'guarded runners are not started',
      { desired: 3, guardedRunners: 2 },
      { start: 1, drain: [], withheld: 2 },
    ],
    [
      'an open breaker permits one runner',
      { desired: 3, maxStarts: 1 },
      { start: 1, drain: [], withheld: 2 },
    ],
    [
      'scales down the oldest idle runners',
      { desired: 1, runners: runners('new/idle@9', 'new/idle@1', 'new/idle@5') },
      { start: 0, drain: ['r1', 'r2'] },
    ],
    [
      'scales down starting runners before idle ones, the newest first',
      {
        desired: 2,
        runners: runners(
          'new/idle@1',
          'new/starting@2',
          'new/starting@3',
          'new/idle@4',
          'new/starting@5',
        ),
      },
      { start: 0, drain: ['r4', 'r2', 'r1'] },
    ],
    [
      'scales down all starting runners when none is desired',
      { desired: 0, runners: runners('new/starting', 'new/starting') },
      { start: 0, drain: ['r1', 'r0'] },
    ],
    [
      'scales down no starting runner before the delay is over',
      { desired: 0, recentPeak: NEVER, runners: runners('new/starting', 'new/idle') },
      { start: 0, drain: [], excess: 2 },
    ],
    [
      'scales down no held starting runner',
      { desired: 0, runners: runners('new/starting!', 'new/starting') },
      { start: 0, drain: ['r1'] },
    ],
    [
      'never scales down a busy runner',
      { desired: 0, runners: runners('new/busy', 'new/idle') },
      { start: 0, drain: ['r1'] },
    ],
    [
      'never scales down a held runner',
      { desired: 0, runners: runners('new/idle!', 'new/idle') },
      { start: 0, drain: ['r1'] },
    ],
    [
      'scales down no runner before the delay is over',
      { desired: 0, recentPeak: NEVER, runners: runners('new/idle', 'new/idle') },
      { start: 0, drain: [], excess: 2 },
    ],
    [
      'scales down to the largest desired number within the delay',
      { desired: 0, recentPeak: 2, runners: runners('new/idle', 'new/idle', 'new/idle') },
      { start: 0, drain: ['r0'], excess: 2 },
    ],
    [
      'busy runners count among the kept ones',
      { desired: 0, recentPeak: 2, runners: runners('new/busy', 'new/idle', 'new/idle') },
      { start: 0, drain: ['r1'], excess: 1 },
    ],
    [
      'a peak starts no runner',
      { desired: 1, recentPeak: 5, runners: runners('new/idle') },
      { start: 0, drain: [] },
    ],
    [
      'rollout: starts a new runner first',
      { desired: 3, runners: runners('old/idle', 'old/idle', 'old/idle') },
      { start: 1, drain: [] },
    ],
    [
      'rollout: drains an old runner for a ready new one',
      { desired: 3, runners: runners('old/idle', 'old/idle', 'old/idle', 'new/idle') },
      { start: 0, drain: ['r0'] },
    ],
    [
      'rollout: drains none for a runner that is online and not ready',
      { desired: 3, runners: runners('old/idle', 'old/idle', 'old/idle', 'new/idle~') },
      { start: 0, drain: [] },
    ],
    [
      'rollout: drains no runner if the only new one is not ready',
      {
        desired: 1,
        maxStarts: 0,
        maxSurge: 2,
        runners: runners('old/idle', 'old/idle', 'new/idle~'),
      },
      { start: 0, drain: [] },
    ],
    [
      'rollout: starts no more than the surge',
      { desired: 3, runners: runners('old/idle', 'old/idle', 'old/idle', 'new/starting') },
      { start: 0, drain: [] },
    ],
    [
      'rollout: the surge may exceed the maximum',
      { desired: 3, maxRunners: 3, runners: runners('old/idle', 'old/idle', 'old/idle') },
      { start: 1, drain: [] },
    ],
    [
      'rollout: the surge is at most the number of old runners',
      {
        desired: 3,
        maxRunners: 3,
        maxSurge: 5,
        runners: runners('old/busy', 'new/draining', 'new/draining', 'new/draining'),
      },
      { start: 0, drain: [], crowded: 3 },
    ],
    [
      'rollout: a larger surge',
      { desired: 3, maxSurge: 5, runners: runners('old/idle', 'old/idle', 'old/idle') },
      { start: 3, drain: [] },
    ],
    [
      'rollout: drains one old runner for each new one online',
      { desired: 3, runners: runners('old/busy', 'old/idle', 'old/idle', 'new/idle') },
      { start: 0, drain: ['r1'] },
    ],
    [
      'rollout: draining runners count until they are gone',
      { desired: 3, runners: runners('old/draining', 'old/idle', 'old/idle', 'new/idle') },
      { start: 0, drain: [] },
    ],
    [
      'rollout: then starts the next',
      { desired: 3, runners: runners('old/idle', 'old/idle', 'new/idle') },
      { start: 1, drain: [] },
    ],
    [
      'rollout: an ephemeral runner that is busy ends by itself',
      { desired: 1, runners: runners('old/busy', 'new/idle') },
      { start: 0, drain: [] },
    ],
    [
      'rollout: a busy static runner is drained after its job',
      { desired: 1, runners: runners('old/busy*', 'new/idle') },
      { start: 0, drain: ['r0'] },
    ],
    [
      'rollout: an idle runner before a busy static one',
      { desired: 2, runners: runners('old/busy*', 'old/idle*', 'new/idle') },
      { start: 0, drain: ['r1'] },
    ],
    [
      'rollout: starting runners first',
      { desired: 2, runners: runners('old/idle', 'old/starting', 'new/idle') },
      { start: 0, drain: ['r1'] },
    ],
    [
      'rollout: a held runner is not replaced',
      { desired: 1, runners: runners('old/idle!') },
      { start: 0, drain: [] },
    ],
    [
      'rollout: old runners beyond the desired number are drained',
      { desired: 0, runners: runners('old/idle', 'old/busy', 'old/idle!') },
      { start: 0, drain: ['r0'] },
    ],
    [
      'rollout: if no new runner can start, the old ones stay',
      { desired: 1, maxStarts: 0, runners: runners('old/idle', 'old/idle') },
      { start: 0, drain: [] },
    ],
    [
      'rollout: the surge is not scaled down before the old runners are gone',
      { desired: 2, runners: runners('new/idle', 'new/idle', 'old/busy') },
      { start: 0, drain: [] },
    ],
    [
      'a runner that does not respond to a drain is drained again',
      {
        desired: 1,
        runners: runners('new/draining?', 'new/draining', 'new/idle'),
        recentPeak: NEVER,
      },
      { start: 0, drain: ['r0'] },
    ],
    [
      'a runner that does not respond to a drain is not drained again if it is held',
      { desired: 1, runners: runners('new/draining?!', 'new/idle') },
      { start: 0, drain: [] },
    ],
    [
      'a runner that does not respond to a drain is not drained again while the set is paused',
      { mode: 'leave', desired: 1, runners: runners('new/draining?', 'new/idle') },
      { start: 0, drain: [] },
    ],
    [
      'the end: drained again, held or not',
      { mode: 'end', runners: runners('new/draining?!', 'new/draining', 'new/idle') },
      { start: 0, drain: ['r2', 'r0'] },
    ],
    [
      'paused: existing runners continue',
      {
        mode: 'leave',
        maxStarts: 0,
        desired: 1,
        runners: runners('old/idle', 'new/idle', 'new/idle'),
      },
      { start: 0, drain: [] },
    ],
    [
      'the end: all runners are drained, also held and busy ones',
      { mode: 'end', runners: runners('new/idle!', 'old/busy', 'new/draining') },
      { start: 0, drain: ['r0', 'r1'] },
    ],
  ])(
    '%s',
    (
      _what,
      given,
      { start, drain, excess = 0, withheld: blocked = 0, crowded: blockedByMax = 0 },
    ) => {
      const plan = planSet(facts(given));
      expect({ ...plan, drain: plan.drain.map(({ workflowId }) => workflowId) }).toEqual({
        start,
        drain,
        excess,
        blocked,
        blockedByMax,
      });
    },
  );
});

describe('the desired size', () => {
  const quiet = {
    queued: 0,
    running: 0,
    finished: 0,
    confirmedQueued: 0,
    busyRunners: 0,
    busyBeforeCheck: 0,
  };
  test.each([
    ['replicas, independent of the demand', { replicas: 4 }, { ...quiet, queued: 9 }, 4],
    ['only minIdle', { minIdle: 2, max: 10 }, quiet, 2],
    [
      'minIdle and one runner for each job',
      { minIdle: 2, max: 10 },
      { ...quiet, queued: 3, running: 1 },
      6,
    ],
    ['never more than max', { minIdle: 2, max: 5 }, { ...quiet, queued: 30 }, 5],
    ['busy runners without an event', { minIdle: 1, max: 10 }, { ...quiet, busyRunners: 2 }, 3],
    [
      'a runner that is about to end does not count for a queued job',
      { minIdle: 1, max: 10 },
      { ...quiet, queued: 2, finished: 3, busyRunners: 3 },
      6,
    ],
    [
      'a runner that is about to end counts in max',
      { minIdle: 1, max: 4 },
      { ...quiet, queued: 2, finished: 3, busyRunners: 3 },
      4,
    ],
    [
      'a busy runner may have the queued job',
      { minIdle: 0, max: 10 },
      { ...quiet, queued: 1, busyRunners: 1 },
      1,
    ],
    [
      'a busy runner may have a job that the CI server reported as queued before',
      { minIdle: 0, max: 10 },
      { ...quiet, queued: 1, confirmedQueued: 1, busyRunners: 1 },
      1,
    ],
    [
      'a busy runner does not have a job that the CI server reported as queued while it was busy',
      { minIdle: 0, max: 10 },
      { ...quiet, queued: 1, confirmedQueued: 1, busyRunners: 1, busyBeforeCheck: 1 },
      2,
    ],
    ['minIdle defaults to 0', { max: 3 }, quiet, 0],
  ])('%s', (_what, scale, asking, wanted) => {
    expect(desiredSize(toBounds(scale), asking)).toBe(wanted);
  });

  test.each([
    ['no busy runner: no successor', { replicas: 4 }, 2, quiet, 4],
    [
      'a successor for each busy runner',
      { replicas: 4 },
      2,
      { ...quiet, busyRunners: 1, running: 1 },
      5,
    ],
    ['at most this many', { replicas: 4 }, 2, { ...quiet, busyRunners: 4 }, 6],
    ['with max: none without a job', { max: 10 }, 2, quiet, 0],
    [
      'in addition to the jobs',
      { max: 10 },
      2,
      { ...quiet, busyRunners: 3, running: 3, queued: 2 },
      7,
    ],
    ['never beyond max', { max: 4 }, 2, { ...quiet, busyRunners: 3, running: 3 }, 4],
    [
      'minIdle runners count as successors',
      { minIdle: 2, max: 10 },
      2,
      { ...quiet, busyRunners: 3 },
      5,
    ],
    [
      'more minIdle runners than successors',
      { minIdle: 5, max: 10 },
      2,
      { ...quiet, busyRunners: 3 },
      8,
    ],
    [
      'fewer minIdle runners than successors',
      { minIdle: 1, max: 10 },
      2,
      { ...quiet, busyRunners: 3 },
      5,
    ],
  ])('started ahead: %s', (_what, scale, warm, asking, wanted) => {
    expect(desiredSize(toBounds(scale, warm), asking)).toBe(wanted);
  });

  test.each([
    [{ replicas: 3 }, 0, false],
    [{ replicas: 3 }, 1, true],
    [{ max: 3 }, 0, false],
    [{ max: 3 }, 1, true],
    [{ minIdle: 1, max: 3 }, 0, true],
  ])('%j with %d ahead: runners are kept ready: %s', (scale, warm, ready) => {
    expect(keepsIdleRunners(toBounds(scale, warm))).toBe(ready);
  });

  test('the limits of the size', () => {
    const [fixed, ahead, elastic] = [
      toBounds({ replicas: 3 }),
      toBounds({ replicas: 3 }, 2),
      toBounds({ minIdle: 1, max: 9 }, 2),
    ];
    expect([fixed, ahead, elastic].map(minAndMax)).toEqual([
      { min: 3, max: 3 },
      { min: 3, max: 5 },
      { min: 1, max: 9 },
    ]);
    expect([fixed, ahead, elastic].map(maxPods)).toEqual([
      Number.POSITIVE_INFINITY,
      Number.POSITIVE_INFINITY,
      9,
    ]);
  });
});

describe('the breaker', () => {
  const pace = { initialRetryMs: 1_000, maxRetryMs: 10_000 };
  const failed = (cause: 'never_registered' | 'quota_exceeded' | 'runner_deprecated') => ({
    outcome: 'errored' as const,
    cause,
    ranJob: false,
  });
  const after = (
    health: SetHealth,
    cause: Parameters<typeof failed>[0],
    startedAt: number,
    now: number,
  ) => recordEnd(health, failed(cause), { startedAt, wasReady: false }, now, pace);

  test('opens at the second failure in a row, and permits one runner at a time, less and less often', () => {
    let health = after(HEALTHY, 'never_registered', 0, 100);
    expect(startAllowance(health, 0, 100)).toEqual({ maxStarts: Number.POSITIVE_INFINITY });
    health = after(health, 'never_registered', 0, 200);
    expect(startAllowance(health, 0, 200)).toEqual({
      maxStarts: 0,
      paused: 'never_registered ×2',
      until: 1_200,
    });
    expect(startAllowance(health, 0, 1_200)).toEqual({
      maxStarts: 1,
      paused: 'never_registered ×2',
    });
    expect(startAllowance(health, 1, 1_200)).toEqual({
      maxStarts: 0,
      paused: 'never_registered ×2',
    });
    // A runner that was started before is not a probe.
    expect(after(health, 'never_registered', 100, 1_300).nextTryAt).toBe(1_200);
    health = after(health, 'never_registered', 1_200, 2_000);
    expect(startAllowance(health, 0, 2_000)).toEqual({
      maxStarts: 0,
      paused: 'never_registered ×3',
      until: 4_000,
    });
    for (let i = 0; i < 10; i++) health = after(health, 'never_registered', 5_000, 20_000);
    expect(health.nextTryAt).toBe(30_000);
    expect(recordReady(health, 19_999)).toBe(health);
    expect(recordReady(health, 20_000)).toEqual(HEALTHY);
  });

  test('a failure that affects every runner delays the next start from the first time on', () => {
    const health = after(HEALTHY, 'quota_exceeded', 0, 100);
    expect(startAllowance(health, 0, 100)).toEqual({
      maxStarts: 0,
      paused: 'quota_exceeded',
      until: 1_100,
    });
    expect(startAllowance(health, 0, 1_100)).toEqual({ maxStarts: Number.POSITIVE_INFINITY });
  });

  test('the last failure is kept with its runner, until a runner is ready', () => {
    const end = (workflowId: string, message: string) => ({
      ...failed('quota_exceeded'),
      cause: 'pod_rejected' as const,
      workflowId,
      message,
    });
    const ENDED = { startedAt: 0, wasReady: false };
    const once = recordEnd(HEALTHY, end('runner-a', 'no such PriorityClass'), ENDED, 100, pace);
    const twice = recordEnd(once, end('runner-b', 'no such volume'), ENDED, 200, pace);
    expect(twice.last).toEqual({
      runner: 'runner-b',
      message: 'no such volume',
      cause: 'pod_rejected',
      at: 200,
    });
    // A failure without a reason keeps the known one.
    expect(after(twice, 'never_registered', 0, 300).last).toEqual(twice.last);
    expect(recordReady(twice, 200).last).toBeUndefined();
  });

  const once = after(HEALTHY, 'never_registered', 0, 100);
  test.each<[string, Partial<Parameters<typeof recordEnd>[1]>, boolean, number]>([
    ['was cancelled', { outcome: 'aborted', cause: 'cancelled' }, false, 1],
    ['was drained', { outcome: 'succeeded' }, false, 1],
    ['was ready', { outcome: 'errored', cause: 'evicted' }, true, 1],
    ['ended before it was ready', { outcome: 'failed' }, false, 2],
    ['ran a job at once', { outcome: 'failed', ranJob: true }, false, 0],
  ])('a runner that %s', (_what, event, wasReady, failures) => {
    const ended = { outcome: 'errored', ranJob: false, ...event } as const;
    expect(recordEnd(once, ended, { startedAt: 0, wasReady }, 200, pace).failures).toBe(failures);
  });

  test('after the first rejected runner version one runner at a time is started', () => {
    const health = recordEnd(
      HEALTHY,
      failed('runner_deprecated'),
      { startedAt: 0, wasReady: false },
      100,
      pace,
    );
    const paused = 'runner_deprecated ×1';
    expect(startAllowance(health, 0, 100)).toEqual({ maxStarts: 0, paused, until: 1_100 });
    expect(startAllowance(health, 0, 1_100)).toEqual({ maxStarts: 1, paused });
  });
});

describe('names', () => {
  test('a name of a runner identifies its workflow, and names of other sets do not', () => {
    const suffix = randomSuffix(() => 0.5);
    expect(suffix).toMatch(/^[a-z0-9]{10}$/);
    expect(runnerWorkflowIdFromName('linux', `linux-${suffix}-0a1b2c3d4e`)).toBe(
      `runner-linux-${suffix}`,
    );
    expect(runnerWorkflowIdFromName('linux', `linux-${suffix}-0a1b2c3d4e-r3`)).toBe(
      `runner-linux-${suffix}`,
    );
    for (const foreign of [
      `linux-big-${suffix}-0a1b2c3d4e`,
      `linux-${suffix}`,
      'linux-0a1b2c3d4e',
      `mac-${suffix}-0a1b2c3d4e`,
    ])
      expect(runnerWorkflowIdFromName('linux', foreign)).toBeUndefined();
    expect(runnerSuffix('linux', `runner-linux-${suffix}`)).toBe(suffix);
    for (const foreign of ['runner-mac-1', 'runner-linux-big', `runner-linux-big-${suffix}`])
      expect(runnerSuffix('linux', foreign)).toBeUndefined();
  });
});
