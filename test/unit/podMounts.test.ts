import { expect, test } from '@jest/globals';
import { podErrors } from '../../activities/compute/kubernetes/podSpec.ts';
import type { PodRequest } from '../../core/domain/pod.ts';

const errorsOf = (spec: Record<string, unknown>, more: Partial<PodRequest> = {}): string[] =>
  podErrors(
    { labels: {}, terminationGracePeriodSeconds: 30, template: { spec }, ...more },
    { image: 'a:1', template: { spec: { volumes: [{ name: 'of-worker', emptyDir: {} }] } } },
    'i',
    () => [],
  );
const runner = (name: string) => ({
  containers: [{ name: 'runner', volumeMounts: [{ name, mountPath: '/v' }] }],
});

test('a container may mount volumes of its template, volumes of the worker’s template, and claims', () => {
  const volumes = [{ name: 'own', emptyDir: {} }];
  const volumeClaims = [{ name: 'cache', mountPath: '/cache', claim: 'c' }];
  expect(errorsOf({ ...runner('own'), volumes }, { volumeClaims })).toEqual([]);
  expect(errorsOf(runner('of-worker'))).toEqual([]);
});

test('a mount of a missing volume is an error that names container and volume', () => {
  const initContainers = [{ name: 'dind', volumeMounts: [{ name: 'lib', mountPath: '/v' }] }];
  expect(errorsOf(runner('gone'))).toEqual([expect.stringMatching(/runner .*gone/)]);
  expect(errorsOf({ containers: [], initContainers })).toEqual([
    expect.stringMatching(/dind .*lib/),
  ]);
});

test.each<[what: string, spec: Record<string, unknown>]>([
  ['lists', { containers: null, initContainers: null, volumes: null }],
  ['lists of a container', { containers: [{ name: 'mine', volumeMounts: null, env: null }] }],
])('%s that are null count as absent', (_what, spec) => {
  expect(errorsOf(spec)).toEqual([]);
});

test.each<[what: string, spec: Record<string, unknown>]>([
  ['a container', { containers: [null] }],
  ['a variable', { containers: [{ name: 'runner', env: [null] }] }],
  ['mounts', { containers: [{ name: 'mine', volumeMounts: 'x' }] }],
  ['a list', { initContainers: 'x' }],
])('%s of the wrong type is an error, not an exception', (_what, spec) => {
  expect(errorsOf(spec)).toEqual([expect.stringContaining('PodSpec')]);
});
