import { expect, test } from '@jest/globals';
import { FAULT_KINDS, LONG, faultKindInfo, type FaultKind } from './faultKinds.ts';
import { CANCEL_KINDS, scheduleOf, type ScheduleOptions } from './schedule.ts';

const OPTIONS: ScheduleOptions = { seed: 7, durationMs: 600_000, runners: 50, nodes: 'kwok' };
const SEEDS = [1, 2, 3, 7, 1_234_567];

test('the same options are the same schedule; another seed is another one', () => {
  expect(scheduleOf(OPTIONS)).toEqual(scheduleOf(OPTIONS));
  expect(scheduleOf({ ...OPTIONS, seed: 8 })).not.toEqual(scheduleOf(OPTIONS));
});

test.each(SEEDS)(
  'seed %d: every fault ends before the schedule does, and lasts as long as its kind may',
  (seed) => {
    for (const { atMs, kind, forMs, pick } of scheduleOf({ ...OPTIONS, seed }).faults) {
      const [least, most] = faultKindInfo(kind).lastsMs;
      expect(atMs + forMs).toBeLessThanOrEqual(OPTIONS.durationMs);
      expect(forMs).toBeGreaterThanOrEqual(least);
      expect(forMs).toBeLessThanOrEqual(most);
      expect(pick >= 0 && pick < 1).toBe(true);
    }
  },
);

test.each(SEEDS)('seed %d: what holds the same does not overlap', (seed) => {
  const { faults } = scheduleOf({ ...OPTIONS, seed });
  const together = faults.flatMap((fault, index) =>
    faults
      .slice(index + 1)
      .filter((later) => later.atMs < fault.atMs + fault.forMs)
      .map((later) => [fault.kind, later.kind] as const),
  );
  expect(together.length).toBeGreaterThan(0);
  const clashes = together.filter(([a, b]) =>
    faultKindInfo(a).holds.some((hold) => faultKindInfo(b).holds.includes(hold)),
  );
  expect(clashes).toEqual([]);
});

test.each(['kwok', 'kubelet'] as const)(
  'ten minutes on %s have every kind that there is there, and none other',
  (nodes) => {
    const there = (Object.keys(FAULT_KINDS) as FaultKind[]).filter((kind) => {
      const info = faultKindInfo(kind);
      return info.cards > 0 && (info.nodes ?? nodes) === nodes;
    });
    for (const seed of SEEDS)
      expect(
        new Set(scheduleOf({ ...OPTIONS, seed, nodes }).faults.map(({ kind }) => kind)),
      ).toEqual(new Set(there));
  },
);

test('faults that keep jobs waiting come one after the other, each of them once, and last', () => {
  const { faults } = scheduleOf({ ...OPTIONS, durationMs: 1_300_000, why: true });
  const named = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(
    (kind) => faultKindInfo(kind).named !== undefined,
  );
  expect(faults.slice(0, named.length).map(({ kind }) => kind).toSorted()).toEqual(named.toSorted()); // prettier-ignore
  for (const [index, { atMs, forMs }] of faults.entries()) {
    expect(forMs).toBeGreaterThanOrEqual(LONG[0]);
    expect(faults[index + 1]?.atMs ?? Infinity).toBeGreaterThan(atMs + forMs);
  }
});

test('work goes with the number of runners, and has every way to be told to go', () => {
  const jobs = (runners: number): number =>
    scheduleOf({ ...OPTIONS, runners }).work.filter(({ kind }) => kind === 'job').length;
  expect(jobs(50) / jobs(5)).toBeGreaterThan(8);
  const { work } = scheduleOf(OPTIONS);
  expect(work.map(({ atMs }) => atMs)).toEqual(
    work.map(({ atMs }) => atMs).toSorted((a, b) => a - b),
  );
  expect(new Set(work.flatMap((step) => (step.kind === 'tell' ? [step.how] : [])))).toEqual(
    new Set(CANCEL_KINDS),
  );
});
