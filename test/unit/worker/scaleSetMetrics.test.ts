import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createScaleSetMetrics } from '../../../worker/process/scaleSetMetrics.ts';

const SESSION = 'holdfast_scaleset_session_up';
const STATISTICS = 'holdfast_scaleset_statistics_timestamp_seconds';
const MINUTE_MS = 60_000;

let registry: Registry;
let record: ReturnType<typeof createScaleSetMetrics>;

beforeEach(() => {
  jest.useFakeTimers();
  registry = new Registry();
  record = createScaleSetMetrics(registry);
});
afterEach(() => void jest.useRealTimers());

/** Returns the value of each set. */
async function values(name: string): Promise<Record<string, number>> {
  await registry.metrics(); // as a scrape does
  const { values = [] } = (await registry.getSingleMetric(name)?.get()) ?? {};
  return Object.fromEntries(values.map(({ labels, value }) => [labels['set'], value]));
}

test('a session that has failed is 0, and one of a listener that is over is absent', async () => {
  for (const set of ['a', 'b']) record(set, { up: true });
  expect(await values(SESSION)).toEqual({ a: 1, b: 1 });
  record('a', { up: false });
  record('b', { up: false, over: true });
  expect(await values(SESSION)).toEqual({ a: 0 });
  expect(Object.keys(await values(STATISTICS))).toEqual(['a']);
});

test('a session that this worker has not had for long is absent, because another one has it', async () => {
  for (const set of ['a', 'b', 'c']) record(set, { up: false });
  jest.setSystemTime(Date.now() + 14 * MINUTE_MS);
  record('b', { up: false });
  record('c', { up: true });
  expect(await values(SESSION)).toEqual({ a: 0, b: 0, c: 1 });
  jest.setSystemTime(Date.now() + MINUTE_MS);
  expect(await values(SESSION)).toEqual({ b: 0, c: 1 });
  jest.setSystemTime(Date.now() + 60 * MINUTE_MS);
  expect(await values(SESSION)).toEqual({ c: 1 });
});
