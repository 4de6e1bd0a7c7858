/** Runners that come online and end at once. They delay further starts, and do not count in a rollout. */
import { describe, expect, test } from '@jest/globals';
import type { RunnerSetInput } from '../../../core/contract/index.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { SetModel } from '../../support/setModel.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const fixed = (replicas: number, more: Partial<RunnerSetInput> = {}): RunnerSetInput => ({
  name: 'linux',
  replicas,
  template: { organization: 'acme' },
  ...more,
});

/** For this time, every runner comes online and ends 600 ms later. */
function crashFor(
  model: SetModel,
  ms: number,
  isCrashing: (runner: object) => boolean = () => true,
): void {
  for (const until = model.now + ms; model.now < until;) {
    for (const runner of model.runners.values()) model.comeOnline(runner);
    model.step(600);
    for (const runner of model.runners.values())
      if (isCrashing(runner)) model.end(runner, 'crashed');
    model.step(0);
  }
}

describe('runners that come online and end', () => {
  test.each([false, true])('are started less and less often (renewed: %s)', (renews) => {
    const model = new SetModel(fixed(2));
    model.renews = renews;
    crashFor(model, 20 * SECOND);
    // Two at first, then one after 15 s.
    expect(model.sent.start).toBe(3);
    expect(setStatus(model.state, model.now).blockedReason).toBe('failed ×3');
    crashFor(model, 60 * MINUTE);
    expect(model.sent.start).toBeLessThan(14);
  });

  test('with `minReady: 0s` an online runner is ready, and only runners that were never online count as failures', () => {
    const model = new SetModel(fixed(2, { minReady: '0s' }));
    crashFor(model, 20 * SECOND);
    expect(model.sent.start).toBeGreaterThan(50);
  });

  /** A set whose breaker has opened, and whose wait is over, so that it starts one runner. */
  function probed(): { model: SetModel; probe: ReturnType<SetModel['pick']> & object } {
    const model = new SetModel(fixed(3));
    crashFor(model, SECOND);
    expect(model.count()).toBe(0);
    model.pass(16 * SECOND);
    const probe = model.pick(0);
    if (probe === undefined || model.count() !== 1) throw new Error('not one runner is tried');
    model.comeOnline(probe);
    model.step(SECOND);
    expect(model.count()).toBe(1);
    return { model, probe };
  }

  test('the breaker closes when a runner is online for long enough', () => {
    const { model } = probed();
    model.pass(8 * SECOND);
    expect({ runners: model.count(), failures: model.state.facts.health.failures }).toEqual({
      runners: 1,
      failures: 3,
    });
    // The set wakes up by its timer.
    expect(decideSet(model.state, model.now).wakeAt).toBeLessThanOrEqual(model.now + 2 * SECOND);
    model.pass(2 * SECOND);
    expect({ runners: model.count(), failures: model.state.facts.health.failures }).toEqual({
      runners: 3,
      failures: 0,
    });
  });

  test.each(['event', 'list'])(
    'the breaker closes when a runner takes a job, reported by its %s',
    (by) => {
      const { model, probe } = probed();
      model.queueJob();
      model.takeJob(probe);
      if (by === 'event') for (const event of model.mail.splice(0)) model.deliver(event);
      else delete model.state.facts.listedAt;
      model.step(SECOND);
      expect(model.state.facts.health.failures).toBe(0);
      expect(model.count()).toBe(3);
    },
  );

  test('a runner that was ready before the failures does not close the breaker', () => {
    const model = new SetModel(fixed(1));
    for (const runner of model.runners.values()) model.comeOnline(runner);
    model.pass(MINUTE);
    const [good] = model.runners.values();
    model.declare({ replicas: 4 });
    model.step(0);
    crashFor(model, 20 * SECOND, (runner) => runner !== good);
    expect(model.sent.start).toBe(1 + 3 + 1);
    expect(model.state.facts.health.failures).toBe(4);
  });

  test('a runner that was drained at once is not a failure', () => {
    const model = new SetModel(fixed(2, { scaleDownDelay: '0s' }));
    for (const runner of model.runners.values()) model.comeOnline(runner);
    model.step(SECOND);
    model.declare({ replicas: 0 });
    model.step(SECOND);
    expect({ runners: model.count(), failures: model.state.facts.health.failures }).toEqual({
      runners: 0,
      failures: 0,
    });
  });
});

describe('a rollout', () => {
  function rollout(maxSurge: number): SetModel {
    const model = new SetModel(fixed(5, { rollout: { maxSurge } }));
    for (const runner of model.runners.values()) model.comeOnline(runner);
    model.pass(MINUTE);
    model.declare({ template: { organization: 'acme', labels: ['new'] } });
    model.step();
    return model;
  }
  const old = (model: SetModel): number =>
    [...model.runners.values()].filter(
      ({ generation }) => generation !== model.state.facts.spec.templateHash,
    ).length;

  test('drains no runner for new runners that end at once', () => {
    const model = rollout(5);
    expect(model.count()).toBe(10);
    for (let round = 0; round < 100; round++) {
      for (const runner of model.runners.values()) model.comeOnline(runner);
      model.step(600);
      for (const runner of model.runners.values())
        if (runner.generation === model.state.facts.spec.templateHash) model.end(runner, 'crashed');
      model.step(0);
    }
    expect(old(model)).toBe(5);
  });

  test('continues when the new runners have been online for `minReady`', () => {
    const model = rollout(5);
    for (const runner of model.runners.values()) model.comeOnline(runner);
    model.pass(9 * SECOND);
    expect(old(model)).toBe(5);
    expect(setStatus(model.state, model.now).waitingFor).toContain(
      '5 runners of an earlier template are left, 5 new ones have not been online for 10s yet',
    );
    model.pass(SECOND);
    expect(old(model)).toBe(0);
  });

  test('counts a new runner with a job at once', () => {
    const model = rollout(1);
    const fresh = [...model.runners.values()].find(
      ({ generation }) => generation === model.state.facts.spec.templateHash,
    );
    if (fresh === undefined) throw new Error('none was started');
    model.comeOnline(fresh);
    model.step(SECOND);
    expect(old(model)).toBe(5);
    model.queueJob();
    model.takeJob(fresh);
    for (const event of model.mail.splice(0)) model.deliver(event);
    model.step(SECOND);
    expect(old(model)).toBe(4);
  });
});
