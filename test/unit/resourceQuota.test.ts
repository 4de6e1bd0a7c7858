import type { V1Container, V1Pod, V1ResourceQuota } from '@kubernetes/client-node';
import { expect, test } from '@jest/globals';
import { exhaustedQuota, quantity } from '../../activities/compute/kubernetes/resourceQuota.ts';

const POD: V1Pod = {
  spec: {
    containers: [
      { name: 'runner', resources: { requests: { cpu: '500m' }, limits: { memory: '1Gi' } } },
      { name: 'db', resources: { requests: { cpu: '250m' } } },
    ],
    initContainers: [
      { name: 'copy', resources: { requests: { cpu: '500m' } } },
      { name: 'dind', restartPolicy: 'Always', resources: { requests: { cpu: '250m' } } },
    ],
  },
};
const withInit = (...initContainers: V1Container[]): V1Pod => ({
  spec: { containers: POD.spec?.containers ?? [], initContainers },
});
const COPY: V1Container = { name: 'copy', resources: { requests: { cpu: '4' } } };
const DIND: V1Container = {
  name: 'dind',
  restartPolicy: 'Always',
  resources: { requests: { cpu: '250m' } },
};
const WITH_INIT = withInit(COPY, DIND);
const AFTER_SIDECAR = withInit(DIND, COPY);
const quota = (
  hard: Record<string, string>,
  used: Record<string, string>,
  spec: V1ResourceQuota['spec'] = {},
): V1ResourceQuota => ({ metadata: { name: 'ci' }, spec, status: { hard, used } });

test.each<[string, V1ResourceQuota, V1Pod | undefined, string | undefined]>([
  ['pods are left', quota({ pods: '10' }, { pods: '9' }), POD, undefined],
  ['all pods are used', quota({ pods: '10' }, { pods: '10' }), POD, 'pods'],
  [
    'all counted pods are used',
    quota({ 'count/pods': '1' }, { 'count/pods': '1' }),
    undefined,
    'count/pods',
  ],
  [
    'the requests of one more pod fit',
    quota({ 'requests.cpu': '2' }, { 'requests.cpu': '1' }),
    POD,
    undefined,
  ],
  [
    'the requests of one more pod do not fit',
    quota({ 'requests.cpu': '2' }, { 'requests.cpu': '1001m' }),
    POD,
    'requests.cpu',
  ],
  ['the short name means requests', quota({ cpu: '2' }, { cpu: '1500m' }), POD, 'cpu'],
  ['an init container fits', quota({ cpu: '5' }, { cpu: '1' }), WITH_INIT, undefined],
  ['an init container does not fit', quota({ cpu: '5' }, { cpu: '1001m' }), WITH_INIT, 'cpu'],
  [
    'an init container after a sidecar fits',
    quota({ cpu: '5' }, { cpu: '750m' }),
    AFTER_SIDECAR,
    undefined,
  ],
  [
    'an init container after a sidecar does not fit',
    quota({ cpu: '5' }, { cpu: '751m' }),
    AFTER_SIDECAR,
    'cpu',
  ],
  [
    'the pod is unknown, and a resource that it may not request is exhausted',
    quota({ 'requests.nvidia.com/gpu': '1' }, { 'requests.nvidia.com/gpu': '1' }),
    undefined,
    undefined,
  ],
  [
    'limits are counted separately',
    quota({ 'limits.memory': '2Gi' }, { 'limits.memory': '1536Mi' }),
    POD,
    'limits.memory',
  ],
  [
    'the requests of a pod are unknown',
    quota({ cpu: '2' }, { cpu: '1500m' }),
    undefined,
    undefined,
  ],
  [
    'another resource is exhausted',
    quota({ secrets: '1', 'requests.storage': '1Gi' }, { secrets: '1', 'requests.storage': '1Gi' }),
    POD,
    undefined,
  ],
  [
    'the quota has a scope',
    quota({ pods: '1' }, { pods: '1' }, { scopes: ['BestEffort'] }),
    POD,
    undefined,
  ],
])('%s', (_when, given, like, resource) => {
  expect(exhaustedQuota([given], like)).toBe(
    resource === undefined ? undefined : `quota ci used up (${resource})`,
  );
});

test.each([
  ['1', 1],
  ['500m', 0.5],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['2k', 2_000],
  ['1e3', 1_000],
  ['x', Number.NaN],
  ['1X', Number.NaN],
])('the quantity %s', (text, value) => {
  expect(quantity(text)).toBe(value);
});
