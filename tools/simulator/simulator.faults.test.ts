import { expect, test } from '@jest/globals';
import { Faults } from './faults.ts';
import { seededRandom } from '../shared/random.ts';

const target = { endpoint: 'DELETE /orgs/acme/actions/runners/7', credential: 'default' };

test.each<[string | undefined, string | undefined, boolean]>([
  [undefined, undefined, true],
  ['DELETE *', undefined, true],
  ['* /orgs/acme/*', undefined, true],
  ['delete /ORGS/acme/actions/runners/7', undefined, true],
  ['DELETE /orgs/acme/actions/runners', undefined, false],
  ['GET *', undefined, false],
  ['DELETE *', 'default', true],
  [undefined, 'other', false],
])('endpoint %s, credential %s: %s', (endpoint, credential, happens) => {
  const faults = new Faults(1);
  faults.add({
    kind: 'status',
    status: 500,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credential === undefined ? {} : { credential }),
  });
  expect(faults.first(['status'], target) !== undefined).toBe(happens);
  expect(faults.first(['drop'], target)).toBeUndefined();
});

test('the runner protocol is spared by everything that does not name it', () => {
  const faults = new Faults(1);
  const protocol = { endpoint: 'POST /_runner/jobs/1/start' };
  faults.add({ kind: 'drop' });
  faults.add({ kind: 'drop', endpoint: 'POST *' });
  expect(faults.first(['drop'], protocol)).toBeUndefined();
  faults.add({ kind: 'drop', endpoint: 'POST /_runner/*' });
  expect(faults.first(['drop'], protocol)).toBeDefined();
});

test('a count is used up, and each fault is cleared by its id', () => {
  const faults = new Faults(1);
  const { id } = faults.add({ kind: 'not_found', count: 2 });
  const hits = [1, 2, 3].map(() => faults.first(['not_found'], target) !== undefined);
  expect(hits).toEqual([true, true, false]);
  expect(faults.list()).toMatchObject([{ id, hits: 2 }]);
  faults.add({ kind: 'forbidden' });
  faults.clear(id);
  expect(faults.list().map((fault) => fault.kind)).toEqual(['forbidden']);
  faults.clear();
  expect(faults.list()).toEqual([]);
});

test('latencies add up, where of other faults the first one counts', () => {
  const faults = new Faults(1);
  faults.add({ kind: 'latency', ms: 10 });
  faults.add({ kind: 'latency', ms: 20 });
  expect(faults.take(['latency'], target).map(({ ms }) => ms)).toEqual([10, 20]);
  faults.add({ kind: 'status', status: 500, count: 1 });
  faults.add({ kind: 'status', status: 503 });
  expect([1, 2].map(() => faults.first(['status'], target)?.status)).toEqual([500, 503]);
});

test('a probability is met about as often, and the same again with the same seed', () => {
  const hitsOf = (seed: number): boolean[] => {
    const faults = new Faults(seed);
    faults.add({ kind: 'not_found', probability: 0.3 });
    return Array.from({ length: 1000 }, () => faults.first(['not_found'], target) !== undefined);
  };
  const hits = hitsOf(5);
  expect(hits.filter(Boolean).length).toBeGreaterThan(250);
  expect(hits.filter(Boolean).length).toBeLessThan(350);
  expect(hitsOf(5)).toEqual(hits);
  expect(hitsOf(6)).not.toEqual(hits);
  expect(seededRandom(1)()).toBeLessThan(1);
});
