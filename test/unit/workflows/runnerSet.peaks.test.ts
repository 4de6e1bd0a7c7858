/** Recent desired numbers of runners. A set scales down to the largest of them. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  recentPeak,
  recordDesired,
  scaleDownTime,
  type Peak,
} from '../../../workflows/runnerSet/peaks.ts';
import { nextRun } from '../../support/nextRun.ts';
import { SetModel } from '../../support/setModel.ts';

const MINUTE = 60_000;
const DELAY = 10 * MINUTE;
const GRAIN = DELAY / 60;

describe('peaks', () => {
  const HIGH: Peak = [20 * MINUTE, 9];
  const LOW: Peak = [25 * MINUTE, 4];

  test.each<[string, readonly Peak[], { from: number; to: number; now: number }, Peak[]]>([
    ['an increase is not a peak', [], { from: 1, to: 5, now: 26 * MINUTE }, []],
    ['a decrease is a peak', [], { from: 5, to: 1, now: 26 * MINUTE }, [[26 * MINUTE, 5]]],
    ['the time is rounded up', [], { from: 5, to: 1, now: 1 }, [[GRAIN, 5]]],
    ['a second decrease', [HIGH], { from: 4, to: 1, now: 25 * MINUTE }, [HIGH, LOW]],
    ['an increase above a peak', [HIGH, LOW], { from: 1, to: 4, now: 26 * MINUTE }, [HIGH]],
    ['an increase below all peaks', [HIGH, LOW], { from: 1, to: 3, now: 26 * MINUTE }, [HIGH, LOW]],
    ['the first peak has expired', [HIGH, LOW], { from: 1, to: 1, now: 30 * MINUTE }, [LOW]],
    ['not before its time', [HIGH, LOW], { from: 1, to: 1, now: 30 * MINUTE - 1 }, [HIGH, LOW]],
    ['a decrease at the time of a higher one', [LOW], { from: 3, to: 1, now: 25 * MINUTE }, [LOW]],
  ])('%s', (_what, before, { now, ...change }, after) => {
    expect(recordDesired(before, change, now, DELAY)).toEqual(after);
  });

  test('without a delay there are no peaks', () => {
    expect(recordDesired([], { from: 5, to: 0 }, MINUTE, 0)).toEqual([]);
  });

  test.each([
    [20 * MINUTE, 9],
    [30 * MINUTE - 1, 9],
    [30 * MINUTE, 4],
    [35 * MINUTE, 0],
  ])('the largest peak at %d is %d', (now, runners) => {
    expect(recentPeak([HIGH, LOW], now, DELAY)).toBe(runners);
  });

  test.each([
    [10, 0],
    [9, 30 * MINUTE],
    [5, 30 * MINUTE],
    [4, 35 * MINUTE],
    [1, 35 * MINUTE],
  ])('fewer than %d runners may remain from %d on', (runners, at) => {
    expect(scaleDownTime([HIGH, LOW], runners, DELAY)).toBe(at);
  });

  test('contain the largest desired number, for at most one part of the delay longer, and are few', () => {
    const change = fc.record({ runners: fc.nat(5_000), afterMs: fc.nat(2 * GRAIN) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 400 }), (changes) => {
        let [peaks, now, desired]: [readonly Peak[], number, number] = [[], MINUTE, 0];
        const wanted: { runners: number; until: number }[] = [];
        const most = (since: number): number =>
          Math.max(0, ...wanted.flatMap(({ runners, until }) => (until > since ? [runners] : [])));
        for (const { runners, afterMs } of changes) {
          now += afterMs;
          wanted.push({ runners: desired, until: now });
          peaks = recordDesired(peaks, { from: desired, to: runners }, now, DELAY);
          desired = runners;
          const kept = Math.max(desired, recentPeak(peaks, now, DELAY));
          expect(kept).toBeGreaterThanOrEqual(Math.max(desired, most(now - DELAY)));
          expect(kept).toBeLessThanOrEqual(Math.max(desired, most(now - DELAY - GRAIN)));
          expect(peaks.length).toBeLessThanOrEqual(61);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('a set with few jobs', () => {
  /** A job arrives, runs and ends within a minute. */
  function runJob(model: SetModel): void {
    model.queueJob();
    for (const event of model.mail.splice(0)) model.deliver(event);
    model.step();
    for (const runner of model.runners.values()) model.comeOnline(runner);
    for (const runner of model.runners.values()) model.takeJob(runner);
    for (const event of model.mail.splice(0)) model.deliver(event);
    model.pass(MINUTE);
    for (const runner of model.runners.values()) model.finishJob(runner);
    for (const event of model.mail.splice(0)) model.deliver(event);
    model.step();
  }

  test.each([false, true])(
    'keeps one runner, not those of an earlier burst (renewed: %s)',
    (renews) => {
      const template = { organization: 'acme', ephemeral: false };
      const model = new SetModel({ name: 'linux', minIdle: 0, max: 100, template });
      model.renews = renews;
      model.declare({ minIdle: 100, max: 100 });
      model.step();
      for (const runner of model.runners.values()) model.comeOnline(runner);
      model.step();
      model.declare({ minIdle: 0, max: 100 });
      runJob(model);
      expect(model.count()).toBe(100);
      model.pass(8 * MINUTE);
      expect(model.count()).toBe(100);
      runJob(model);
      model.pass(MINUTE);
      expect(model.count()).toBe(1);
      for (let hour = 0; hour < 6; hour++) {
        model.pass(8 * MINUTE);
        runJob(model);
        expect(model.count()).toBe(1);
      }
      model.pass(11 * MINUTE);
      expect(model.count()).toBe(0);
    },
  );

  test('a time of a run whose clock was ahead does not outlast the next run', () => {
    const template = { organization: 'acme', ephemeral: false };
    const model = new SetModel({ name: 'linux', minIdle: 3, max: 3, template });
    model.declare({ minIdle: 0, max: 3 });
    model.step();
    expect(model.state.facts.peaks).toEqual([[expect.any(Number), 3]]);
    model.state.facts.peaks = [[model.now + 1_000 * DELAY, 3]];
    expect(nextRun(model.state).facts.peaks).toEqual([[expect.any(Number), 3]]);
    expect(nextRun(model.state).facts.peaks[0]?.[0]).toBeLessThanOrEqual(model.now);
  });
});
