import { describe, expect, test } from '@jest/globals';
import {
  placeName,
  placeOfLife,
  serves,
  type Place,
  type ServedPlace,
} from '../../../core/domain/location.ts';
import { runningRunnersIn } from '../../../core/domain/visibility.ts';

const HOME: ServedPlace = {
  compute: 'kubernetes',
  cluster: 'c1',
  installation: 'mine',
  namespace: 'ci',
};
const ALL: ServedPlace = { ...HOME, allNamespaces: true };
const LAPTOP: ServedPlace = { compute: 'process', cluster: 'm1', installation: 'mine' };

test.each<[string, ServedPlace, string | undefined, Place]>([
  ['the namespace of the worker', HOME, undefined, HOME],
  ['the namespace that the input names', ALL, 'team-a', { ...HOME, namespace: 'team-a' }],
  ['the namespace of a worker that uses all, where the input names none', ALL, undefined, HOME],
  ['none, where the compute has none', LAPTOP, 'team-a', LAPTOP],
])('a new life is lived in %s', (_, served, namespace, expected) => {
  expect(placeOfLife(served, namespace)).toEqual(expected);
});

describe('a worker serves', () => {
  test.each<[string, ServedPlace, Place, boolean]>([
    ['its own place', HOME, HOME, true],
    ['any namespace, if it uses all', ALL, { ...HOME, namespace: 'team-a' }, true],
    ['its own machine', LAPTOP, LAPTOP, true],
    ['not another namespace', HOME, { ...HOME, namespace: 'team-a' }, false],
    ['not another installation', HOME, { ...HOME, installation: 'yours' }, false],
    [
      'not another installation, all namespaces or not',
      ALL,
      { ...HOME, installation: 'yours' },
      false,
    ],
    ['not another cluster', HOME, { ...HOME, cluster: 'c2' }, false],
    ['not another cluster, all namespaces or not', ALL, { ...HOME, cluster: 'c2' }, false],
    ['not another compute', HOME, LAPTOP, false],
    ['not another machine', LAPTOP, { ...LAPTOP, cluster: 'm2' }, false],
  ])('%s', (_, served, place, expected) => {
    expect(serves(served, place)).toBe(expected);
  });
});

test('names go from the whole to the part', () => {
  expect([HOME, ALL, LAPTOP].map(placeName)).toEqual([
    'kubernetes/c1/mine/ci',
    'kubernetes/c1/mine/*',
    'process/m1/mine',
  ]);
});

test('the lives of a worker are found by the name of their place, or by the part that all of them share', () => {
  expect(runningRunnersIn('q', HOME)).toMatch(
    / AND TaskQueue = 'q' AND RunnerPlace = 'kubernetes\/c1\/mine\/ci'$/,
  );
  expect(runningRunnersIn('q', ALL)).toMatch(
    / AND RunnerPlace STARTS_WITH 'kubernetes\/c1\/mine\/'$/,
  );
});
