import { describe, expect, test } from '@jest/globals';
import {
  formatLocation,
  formatServedLocation,
  runnerLocation,
  servesLocation,
  type Location,
  type ServedLocation,
} from '../../../core/domain/location.ts';
import { runningRunnersInQuery } from '../../../core/domain/visibility.ts';

const HOME: ServedLocation = {
  compute: 'kubernetes',
  cluster: 'c1',
  installation: 'mine',
  namespace: 'ci',
};
const SEVERAL: ServedLocation = { ...HOME, otherNamespaces: ['team-a', 'team-b'] };
const LAPTOP: ServedLocation = { compute: 'process', cluster: 'm1', installation: 'mine' };

test.each<[string, ServedLocation, string | undefined, Location]>([
  ['the namespace of the worker', HOME, undefined, HOME],
  ['the namespace that the input names', SEVERAL, 'team-a', { ...HOME, namespace: 'team-a' }],
  [
    'the default namespace of a worker with several, if the input names none',
    SEVERAL,
    undefined,
    HOME,
  ],
  ['no namespace, if the compute has none', LAPTOP, 'team-a', LAPTOP],
])('the location of a new runner: %s', (_, served, namespace, expected) => {
  expect(runnerLocation(served, namespace)).toEqual(expected);
});

describe('a worker serves', () => {
  test.each<[string, ServedLocation, Location, boolean]>([
    ['its own location', HOME, HOME, true],
    ['another of its namespaces', SEVERAL, { ...HOME, namespace: 'team-b' }, true],
    ['only its namespaces', SEVERAL, { ...HOME, namespace: 'team-c' }, false],
    ['its own machine', LAPTOP, LAPTOP, true],
    ['not another namespace', HOME, { ...HOME, namespace: 'team-a' }, false],
    ['not another installation', HOME, { ...HOME, installation: 'yours' }, false],
    [
      'not another installation, with any namespaces',
      SEVERAL,
      { ...HOME, installation: 'yours' },
      false,
    ],
    ['not another cluster', HOME, { ...HOME, cluster: 'c2' }, false],
    ['not another cluster, with any namespaces', SEVERAL, { ...HOME, cluster: 'c2' }, false],
    ['not another compute', HOME, LAPTOP, false],
    ['not another machine', LAPTOP, { ...LAPTOP, cluster: 'm2' }, false],
  ])('%s', (_, served, place, expected) => {
    expect(servesLocation(served, place)).toBe(expected);
  });
});

test('names go from the cluster to the namespace', () => {
  expect([HOME, LAPTOP].map(formatLocation)).toEqual(['kubernetes/c1/mine/ci', 'process/m1/mine']);
  expect([HOME, SEVERAL, LAPTOP].map(formatServedLocation)).toEqual([
    'kubernetes/c1/mine/ci',
    'kubernetes/c1/mine/ci,team-a,team-b',
    'process/m1/mine',
  ]);
});

test('the workflows of a worker are found by the name of each location', () => {
  expect(runningRunnersInQuery('q', HOME)).toMatch(
    / AND TaskQueue = 'q' AND RunnerLocation = 'kubernetes\/c1\/mine\/ci'$/,
  );
  expect(runningRunnersInQuery('q', SEVERAL)).toMatch(
    / AND RunnerLocation IN \('kubernetes\/c1\/mine\/ci', 'kubernetes\/c1\/mine\/team-a', 'kubernetes\/c1\/mine\/team-b'\)$/,
  );
});
