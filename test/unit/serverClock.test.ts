/** The time of a server, according to its responses. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { ServerClock } from '../../activities/compute/kubernetes/serverClock.ts';

/** The time of this process, within a second of its clock. */
const HERE = Date.parse('2026-03-01T12:00:00.400Z');
const MINUTE = 60_000;

beforeEach(() => void jest.useFakeTimers({ now: HERE }));
afterEach(() => void jest.useRealTimers());

/** A response that took `tookMs`, from a server whose clock is ahead by `aheadMs`. */
function respond(clock: ServerClock, aheadMs: number, tookMs = 0): void {
  const date = new Date(HERE + aheadMs).toUTCString();
  jest.setSystemTime(HERE + tookMs);
  clock.onResponse(date, HERE);
  jest.setSystemTime(HERE);
}

test.each<[what: string, aheadMs: number, tookMs: number, offsetMs: number]>([
  ['the same', 0, 0, 0],
  ['the same, after a slow response', 0, 3_000, 0],
  ['ahead by less than the rounding', 300, 0, 0],
  // 12:02:00 in whole seconds, from 1.6 s before to 0.6 s after.
  ['ahead', 2 * MINUTE, 0, 2 * MINUTE - 400],
  ['behind', -2 * MINUTE, 0, -2 * MINUTE + 600],
  ['ahead, after a slow response: the certain part only', 2 * MINUTE, 3_000, 2 * MINUTE - 3_400],
])('%s', (_what, aheadMs, tookMs, offsetMs) => {
  const clock = new ServerClock();
  respond(clock, aheadMs, tookMs);
  expect(clock.now() - HERE).toBe(offsetMs);
});

test('the latest response decides; one without a date changes nothing', () => {
  const clock = new ServerClock();
  respond(clock, 2 * MINUTE);
  respond(clock, -2 * MINUTE);
  for (const date of [undefined, 'yesterday', ['a', 'b']]) clock.onResponse(date, HERE);
  expect(clock.now() - HERE).toBe(-2 * MINUTE + 600);
});
