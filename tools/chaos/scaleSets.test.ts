import { expect, test } from '@jest/globals';
import { servedMs } from './scaleSets.ts';

const OUTAGES = [
  { from: 10_000, readyMs: 5_000 },
  { from: 30_000, readyMs: 8_000 },
];

test.each([
  ['before every outage', 1_000, 4_000, 3_000],
  ['from the middle of an outage', 12_000, 20_000, 5_000],
  ['into the middle of an outage', 28_000, 33_000, 2_000],
  ['within an outage', 31_000, 37_000, 0],
  ['across both outages', 9_000, 40_000, 18_000],
])('a wait %s counts only while a worker was ready', (_where, from, to, expected) => {
  expect(servedMs({ from, to }, OUTAGES)).toBe(expected);
});

test('the wait of a job that never started is not a number, so it exceeds the limit', () => {
  expect(servedMs({ from: 0, to: Number.NaN }, OUTAGES)).toBeNaN();
});
