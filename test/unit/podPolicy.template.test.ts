/** The worker's own pod template, and the fields that a runner may change. */
import { expect, test } from '@jest/globals';
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import {
  installationImages,
  policyViolations,
  toPolicyInput,
} from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import type { PodRequest, PodTemplate } from '../../core/domain/pod.ts';

const TEMPLATE: PodTemplate = {
  metadata: { labels: { team: 'ci' } },
  spec: {
    nodeSelector: { pool: 'ci' },
    containers: [
      {
        name: 'runner',
        env: [{ name: 'CACHE', value: 'https://cache' }],
        resources: { limits: { cpu: '4' } },
      },
      { name: 'proxy', image: 'proxy:1' },
    ],
    volumes: [{ name: 'work', emptyDir: { sizeLimit: '1Gi' } }],
  },
};
const GENEROUS = {
  labels: ['*'],
  nodeSelectors: ['*'],
  images: ['*'],
};

/** @returns the start of each violation */
function judge(request: Partial<PodRequest>, policy: object = {}): string[] {
  const whole: PodRequest = {
    identity: { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 },
    labels: {},
    terminationGracePeriodSeconds: 1,
    ...request,
  };
  const defaults = { image: 'runner:1', template: TEMPLATE };
  return policyViolations(
    toPolicyInput(podSpec(whole, defaults, 'holdfast', undefined), whole, 'ci', TEMPLATE),
    podPolicySchema.parse({ ...GENEROUS, ...policy }),
    { images: installationImages(defaults), namespaces: ['ci'] },
  ).map((fault) => fault.split(' is not allowed')[0] ?? '');
}
const spec = (over: object): Partial<PodRequest> => ({ template: { spec: { ...over } } });
const runner = (over: object): Partial<PodRequest> =>
  spec({ containers: [{ name: 'runner', ...over }] });

test.each<[what: string, request: Partial<PodRequest>]>([
  ['no template', {}],
  ['the same as the worker', { template: TEMPLATE }],
  ['more node labels', spec({ nodeSelector: { disk: 'ssd' } })],
  ['more variables', { env: { A: 'a' } }],
  ['another resource', runner({ resources: { limits: { memory: '1Gi' } } })],
  ['an additional container', spec({ containers: [{ name: 'mine', image: 'mine:1' }] })],
  ['an additional volume', spec({ volumes: [{ name: 'mine', emptyDir: {} }] })],
  ['an image if the template has none', { image: 'mine:1' }],
])('a runner may have %s', (_what, request) => expect(judge(request)).toEqual([]));

test.each<[what: string, field: string, path: string, request: Partial<PodRequest>]>([
  ['other nodes', 'nodeSelector.pool', 'nodeSelector.pool', spec({ nodeSelector: { pool: 'x' } })],
  [
    'another label',
    'metadata.labels.team',
    'metadata.labels.team',
    { template: { metadata: { labels: { team: 'x' } } } },
  ],
  [
    'another limit',
    'containers.resources.limits.cpu',
    'containers[runner].resources.limits.cpu',
    runner({ resources: { limits: { cpu: '64' } } }),
  ],
  [
    'another value of a variable in the template',
    'containers.env.value',
    'containers[runner].env[CACHE].value',
    runner({ env: [{ name: 'CACHE', value: 'http://evil' }] }),
  ],
  [
    'another value of a variable in the input',
    'containers.env.value',
    'containers[runner].env[CACHE].value',
    { env: { CACHE: 'http://evil' } },
  ],
  [
    "a command in another of the worker's containers",
    'containers',
    'containers[proxy]',
    spec({ containers: [{ name: 'proxy', command: ['sh'] }] }),
  ],
  [
    'another volume of that name',
    'volumes',
    'volumes[work]',
    spec({ volumes: [{ name: 'work', configMap: { name: 'x' } }] }),
  ],
])('a runner may not have %s, unless "overrides" permits it', (_what, field, path, request) => {
  expect(judge(request)).toContain(`${path}: another "${field}" than the worker's template has`);
  expect(judge(request, { overrides: [field] })).not.toContainEqual(
    expect.stringContaining("than the worker's template has"),
  );
});

test('with "template: fixed" a runner may not have a template, but may name an allowed image', () => {
  const fixed = { template: 'fixed' };
  expect(judge({ image: 'mine:1', env: { A: 'a' } }, fixed)).toEqual([]);
  expect(judge({ template: { metadata: {}, spec: {} } }, fixed)).toEqual([]);
  expect(judge(spec({ nodeSelector: { pool: 'ci' } }), fixed)).toEqual([
    "spec: a template of the runner's own",
  ]);
  expect(judge({ template: { metadata: { labels: { a: 'b' } } } }, fixed)).toEqual([
    "metadata: a template of the runner's own",
  ]);
});

test.each<[what: string, request: Partial<PodRequest>]>([
  ['a field', spec({ nodeSelector: null })],
  ['a field of the runner', runner({ resources: null, env: null, securityContext: null })],
  ['all containers and volumes', spec({ containers: null, volumes: null })],
  ['a field of another container', spec({ containers: [{ name: 'proxy', image: null }] })],
])('null does not remove %s of the worker’s template', (_what, request) => {
  const pod = (more: Partial<PodRequest>) =>
    podSpec(
      {
        identity: { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 },
        labels: {},
        terminationGracePeriodSeconds: 1,
        ...more,
      },
      { image: 'runner:1', template: TEMPLATE },
      'holdfast',
      undefined,
    );
  expect(pod(request)).toEqual(pod({}));
});
