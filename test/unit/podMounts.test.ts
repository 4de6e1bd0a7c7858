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
