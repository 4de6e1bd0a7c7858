/** Times from untrusted senders: formatting one must not fail a workflow. */
import { expect, test } from '@jest/globals';
import { isoTime } from '../../../core/domain/isoTime.ts';
import { isTime } from '../../../core/domain/isTime.ts';

test.each<[ms: unknown, is: boolean]>([
  [0, true],
  [253_402_300_799_999, true],
  [-1, false],
  [253_402_300_800_000, false],
  [Number.NaN, false],
  [Number.POSITIVE_INFINITY, false],
  ['5', false],
  [null, false],
])('%p is a time: %p', (ms, is) => {
  expect(isTime(ms)).toBe(is);
});

test.each<[ms: number, text: string]>([
  [0, '1970-01-01T00:00:00.000Z'],
  [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
  [-1, '1969-12-31T23:59:59.999Z'],
  [-9e15, '-271821-04-20T00:00:00.000Z'],
  [1e300, '+275760-09-13T00:00:00.000Z'],
  [Number.NEGATIVE_INFINITY, '-271821-04-20T00:00:00.000Z'],
  [Number.NaN, '1970-01-01T00:00:00.000Z'],
])('%p is formatted as %s', (ms, text) => {
  expect(isoTime(ms)).toBe(text);
});
