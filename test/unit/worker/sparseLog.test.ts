import { expect, test } from '@jest/globals';
import { RateLimitedLogger } from '../../../worker/process/rateLimitedLogger.ts';

test('one log line of each kind per minute, with the number of suppressed ones', () => {
  let now = 0;
  const lines: string[] = [];
  const log = new RateLimitedLogger(60_000, () => now);
  const line = (kind: string): void =>
    log.line(kind, (leftOut) => lines.push(`${kind} ${leftOut}`));
  for (const [at, kind] of [
    [0, 'a'],
    [1, 'a'],
    [2, 'b'],
    [59_999, 'a'],
    [60_000, 'a'],
    [120_000, 'a'],
  ] as const) {
    now = at;
    line(kind);
  }
  expect(lines).toEqual(['a 0', 'b 0', 'a 2', 'a 0']);
});
