import { describe, expect, test } from '@jest/globals';
import { formatDuration, toMilliseconds, parseDuration } from '../../../core/domain/duration.ts';

describe('parseDuration', () => {
  test.each<[text: string, ms: number]>([
    ['0s', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['10m', 600_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['1h30m', 5_400_000],
    ['4h0m0s', 14_400_000],
    ['1.5h', 5_400_000],
    ['0.5ms', 1],
    ['3650d', 315_360_000_000],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    '',
    '5',
    '-5m',
    '+5m',
    '5 m',
    ' 5m',
    '5m ',
    '5x',
    'm',
    'PT5M',
    '5M',
    '1e3s',
    '1.s',
    '.5s',
    '3651d',
    '9'.repeat(400) + 's',
  ])('%p is invalid', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test('every duration from now is a valid date', () => {
    expect(new Date(Date.now() + (parseDuration('3650d') ?? Number.NaN)).toISOString()).toMatch(
      /^20\d\d-/,
    );
  });
});

describe('formatDuration', () => {
  test.each<[ms: number, text: string]>([
    [-5, '0ms'],
    [0, '0ms'],
    [250, '250ms'],
    [1_000, '1s'],
    [15_000, '15s'],
    [59_999, '1m0s'],
    [90_000, '1m30s'],
    [3_600_000, '1h0m0s'],
    [14_400_000, '4h0m0s'],
    [86_399_000, '23h59m59s'],
    [172_800_000, '48h0m0s'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('parseDuration parses its output', () => {
    for (let ms = 0; ms < 1_000; ms += 7) expect(parseDuration(formatDuration(ms))).toBe(ms);
    for (let s = 1; s < 400_000; s += 997)
      expect(parseDuration(formatDuration(s * 1_000))).toBe(s * 1_000);
  });
});

test('durations in ms have names that end in Ms, and fields without a value are omitted', () => {
  expect(toMilliseconds({ resync: '10m', idle: undefined, guard: '0s' })).toStrictEqual({
    resyncMs: 600_000,
    guardMs: 0,
  });
});
