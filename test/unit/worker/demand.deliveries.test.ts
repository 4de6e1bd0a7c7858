import { describe, expect, test } from '@jest/globals';
import { DemandDeliveries } from '../../../worker/demand/deliveries.ts';
import { SparseLog } from '../../../worker/sparseLog.ts';

describe('repeated deliveries', () => {
  const keep = (result: string): boolean => result === 'accepted';

  test('are passed on once', async () => {
    const deliveries = new DemandDeliveries<string>();
    let passed = 0;
    const pass = async (): Promise<string> => (passed++, 'accepted');
    expect(await deliveries.once('a', pass, keep)).toEqual({ result: 'accepted', repeated: false });
    expect(await deliveries.once('a', pass, keep)).toEqual({ result: 'accepted', repeated: true });
    expect(await deliveries.once('b', pass, keep)).toEqual({ result: 'accepted', repeated: false });
    expect(passed).toBe(2);
  });

  test('share the fate of the one under way', async () => {
    const deliveries = new DemandDeliveries<string>();
    const { promise, resolve } = Promise.withResolvers<string>();
    const both = [deliveries.once('a', () => promise, keep), deliveries.once('a', () => Promise.reject(new Error('twice')), keep)];
    resolve('accepted');
    expect((await Promise.all(both)).map(({ repeated }) => repeated)).toEqual([false, true]);
  });

  test.each([
    ['refused', () => Promise.resolve('refused')],
    ['failed', () => Promise.reject(new Error('down'))],
  ])('of one that was %s are tried again', async (_what, pass) => {
    const deliveries = new DemandDeliveries<string>();
    await deliveries.once('a', pass, keep).catch(() => undefined);
    expect(await deliveries.once('a', () => Promise.resolve('accepted'), keep)).toEqual({ result: 'accepted', repeated: false });
  });

  test('without an id cannot be known; the oldest are forgotten', async () => {
    const deliveries = new DemandDeliveries<string>(2);
    const pass = (): Promise<string> => Promise.resolve('accepted');
    const repeated: boolean[] = [];
    for (const key of [undefined, undefined, 'a', 'b', 'c', 'b', 'a']) repeated.push((await deliveries.once(key, pass, keep)).repeated);
    expect(repeated).toEqual([false, false, false, false, false, true, false]);
  });
});

test('a log line of each kind a minute, with how many were left out', () => {
  let now = 0;
  const lines: string[] = [];
  const log = new SparseLog(60_000, () => now);
  const line = (kind: string): void => log.line(kind, (leftOut) => lines.push(`${kind} ${leftOut}`));
  for (const [at, kind] of [[0, 'a'], [1, 'a'], [2, 'b'], [59_999, 'a'], [60_000, 'a'], [120_000, 'a']] as const) {
    now = at;
    line(kind);
  }
  expect(lines).toEqual(['a 0', 'b 0', 'a 2', 'a 0']);
});
