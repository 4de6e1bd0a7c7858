import { expect, test } from '@jest/globals';
import { FAULT_KINDS, LONG, faultKindInfo, type FaultKind } from './faultKinds.ts';
import { CANCEL_KINDS, scheduleOf, type ScheduleOptions } from './schedule.ts';

const OPTIONS: ScheduleOptions = { seed: 7, durationMs: 600_000, runners: 50, nodes: 'kwok' };
const SEEDS = [1, 2, 3, 7, 1_234_567];

test('the same options give the same schedule, and another seed gives another one', () => {
  expect(scheduleOf(OPTIONS)).toEqual(scheduleOf(OPTIONS));
  expect(scheduleOf({ ...OPTIONS, seed: 8 })).not.toEqual(scheduleOf(OPTIONS));
});

test.each(SEEDS)(
  'seed %d: every fault ends before the schedule does, and its duration is within the bounds of its kind',
  (seed) => {
    for (const { atMs, kind, forMs, pick } of scheduleOf({ ...OPTIONS, seed }).faults) {
      const [min, max] = faultKindInfo(kind).lastsMs;
      expect(atMs + forMs).toBeLessThanOrEqual(OPTIONS.durationMs);
      expect(forMs).toBeGreaterThanOrEqual(min);
      expect(forMs).toBeLessThanOrEqual(max);
      expect(pick >= 0 && pick < 1).toBe(true);
    }
  },
);

test.each(SEEDS)('seed %d: faults of the same resource do not overlap', (seed) => {
  const { faults } = scheduleOf({ ...OPTIONS, seed });
  const together = faults.flatMap((fault, index) =>
    faults
      .slice(index + 1)
      .filter((later) => later.atMs < fault.atMs + fault.forMs)
      .map((later) => [fault.kind, later.kind] as const),
  );
  expect(together.length).toBeGreaterThan(0);
  const clashes = together.filter(([a, b]) =>
    faultKindInfo(a).resources.some((resource) => faultKindInfo(b).resources.includes(resource)),
  );
  expect(clashes).toEqual([]);
});

test.each(['kwok', 'kubelet'] as const)(
  'ten minutes on %s have every kind of fault for these nodes, and no other',
  (nodes) => {
    const expected = (Object.keys(FAULT_KINDS) as FaultKind[]).filter((kind) => {
      const info = faultKindInfo(kind);
      return info.perRound > 0 && (info.nodes ?? nodes) === nodes;
    });
    for (const seed of SEEDS)
      expect(
        new Set(scheduleOf({ ...OPTIONS, seed, nodes }).faults.map(({ kind }) => kind)),
      ).toEqual(new Set(expected));
  },
);

test('with --why, each fault that keeps jobs waiting occurs once, one at a time, for a minute', () => {
  const { faults } = scheduleOf({ ...OPTIONS, durationMs: 1_300_000, why: true });
  const expected = (Object.keys(FAULT_KINDS) as FaultKind[]).filter(
    (kind) => faultKindInfo(kind).expectedCauses !== undefined,
  );
  expect(faults.slice(0, expected.length).map(({ kind }) => kind).toSorted()).toEqual(expected.toSorted()); // prettier-ignore
  for (const [index, { atMs, forMs }] of faults.entries()) {
    expect(forMs).toBeGreaterThanOrEqual(LONG[0]);
    expect(faults[index + 1]?.atMs ?? Infinity).toBeGreaterThan(atMs + forMs);
  }
});

test('the number of jobs grows with the number of runners, and every kind of stop request occurs', () => {
  const jobs = (runners: number): number =>
    scheduleOf({ ...OPTIONS, runners }).work.filter(({ kind }) => kind === 'job').length;
  expect(jobs(50) / jobs(5)).toBeGreaterThan(8);
  const { work } = scheduleOf(OPTIONS);
  expect(work.map(({ atMs }) => atMs)).toEqual(
    work.map(({ atMs }) => atMs).toSorted((a, b) => a - b),
  );
  expect(new Set(work.flatMap((step) => (step.kind === 'stopRunner' ? [step.how] : [])))).toEqual(
    new Set(CANCEL_KINDS),
  );
});
