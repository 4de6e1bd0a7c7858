/** The pod of an outsider's run, independent of its job, the worker's template and the worker's policy. */
import type { V1PodSpec } from '@kubernetes/client-node';
import { describe, expect, test } from '@jest/globals';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import {
  toPolicyInput,
  policyViolations,
} from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import {
  podErrors,
  podSpec,
  type PodDefaults,
} from '../../activities/compute/kubernetes/podSpec.ts';
import { processErrors } from '../../activities/compute/process/runnerCommand.ts';
import type { PodRequest } from '../../core/domain/pod.ts';
import { parseJobInput } from '../../core/input/job.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';
import type { StepVolume } from '../../core/contract/index.ts';

/** Permits everyone else all that outsiders must not have. */
const GENEROUS = podPolicySchema.parse({
  serviceAccounts: ['*'],
  secrets: ['*'],
  claims: ['*'],
  volumes: ['csi', 'nfs', 'secret', 'projected', 'ephemeral', 'configMap'],
  hostPaths: ['/'],
  host: ['network', 'pid', 'ipc'],
  privileged: true,
  capabilities: ['*'],
});
const IMAGE = 'example.com/web:1';
const own = { images: [IMAGE], namespaces: ['ci'], store: 'artifacts' };
const DEFAULTS: PodDefaults = {
  image: IMAGE,
  store: { place: { claim: 'artifacts' }, image: IMAGE },
  supervisor: { image: IMAGE },
};
const identity = { workflowId: 'job-x-test-1', firstRunId: 'r', attempt: 1 };

const OTHERS: StepVolume[] = [
  { name: 'cloud', mountPath: '/cloud', secret: { secretName: 'cloud' } },
  { name: 'cache', mountPath: '/cache', persistentVolumeClaim: { claimName: 'cache' } },
];

/** The request to the compute that follows from the job's input. An outsider's input cannot name objects of others. */
function requestOf(untrusted: boolean): PodRequest {
  const job = parseJobInput(
    {
      name: 'unit',
      repository: 'acme/web',
      source: { event: 'pull_request', pullRequest: 7, ...(untrusted ? { untrusted } : {}) },
      test: [{ name: 'unit', commands: 'make test', ...(untrusted ? {} : { volumes: OTHERS }) }],
    },
    { workflowId: 'job-x', runId: 'run' },
  );
  if (!job.ok) throw new Error(JSON.stringify(job.errors));
  const [step] = job.spec.steps;
  const runner = parseRunnerInput({
    ...step?.runner,
    storage: { ...step?.storage, sharedDirSources: [] },
  });
  if (!runner.ok) throw new Error(JSON.stringify(runner.errors));
  return { identity, ...runner.spec.pod };
}

const faultsWith = (untrusted: boolean, spec: Partial<V1PodSpec>): string[] =>
  podErrors(
    requestOf(untrusted),
    { ...DEFAULTS, template: { spec } as never },
    'ci',
    (pod, request) => policyViolations(toPolicyInput(pod, request, 'ci'), GENEROUS, own),
  );

test('it has no Secret, claim or token, and its step has no access to the store; a trusted pod has what its job sets', () => {
  const [outsiders, trusted] = [
    podSpec(requestOf(true), DEFAULTS, 'ci', undefined),
    podSpec(requestOf(false), DEFAULTS, 'ci', undefined),
  ];
  expect(JSON.stringify(outsiders)).not.toMatch(/"secret|secretKeyRef|serviceAccountName|"cache"/);
  expect(outsiders.spec?.automountServiceAccountToken).toBe(false);
  expect(
    outsiders.spec?.containers
      .find(({ name }) => name === 'runner')
      ?.volumeMounts?.map(({ name }) => name),
  ).not.toContain('holdfast-store');
  expect(JSON.stringify(trusted)).toMatch(
    /"secretName":"cloud".*"claimName":"cache"|"claimName":"cache".*"secretName":"cloud"/,
  );
  expect(policyViolations(toPolicyInput(outsiders, requestOf(true), 'ci'), GENEROUS, own)).toEqual(
    [],
  );
});

describe("forbidden objects are rejected even if the worker's own template sets them for all pods", () => {
  const container = (more: object): Partial<V1PodSpec> => ({
    containers: [{ name: 'runner', ...more }] as V1PodSpec['containers'],
  });
  test.each<[what: string, spec: Partial<V1PodSpec>, rule: string]>([
    [
      'a Secret in a variable',
      container({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'cloud', key: 'a' } } }] }),
      'secrets',
    ],
    [
      'all variables of a Secret',
      container({ envFrom: [{ secretRef: { name: 'cloud' } }] }),
      'secrets',
    ],
    [
      'a volume of a Secret',
      { volumes: [{ name: 's', secret: { secretName: 'cloud' } }] },
      'secrets',
    ],
    ['a service account', { serviceAccountName: 'deployer' }, 'serviceAccounts'],
    ['its token', { automountServiceAccountToken: true }, 'serviceAccounts'],
    [
      'a token in a volume',
      {
        volumes: [{ name: 't', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }],
      },
      'serviceAccounts',
    ],
    [
      "others' claim",
      { volumes: [{ name: 'c', persistentVolumeClaim: { claimName: 'cache' } }] },
      'claims',
    ],
    [
      'the claim of the store',
      { volumes: [{ name: 'mine', persistentVolumeClaim: { claimName: 'artifacts' } }] },
      'claims',
    ],
    ["others' folder", { volumes: [{ name: 'n', nfs: { server: 'nfs', path: '/' } }] }, 'volumes'],
    [
      'a CSI volume',
      { volumes: [{ name: 'd', csi: { driver: 'secrets-store.csi.k8s.io' } }] },
      'volumes',
    ],
    [
      'a folder of the node',
      { volumes: [{ name: 'h', hostPath: { path: '/var/cache' } }] },
      'hostPaths',
    ],
    ["the node's network", { hostNetwork: true }, 'host'],
    ['the node', container({ securityContext: { privileged: true } }), 'privileged'],
    [
      'a capability',
      container({ securityContext: { capabilities: { add: ['NET_ADMIN'] } } }),
      'capabilities',
    ],
  ])('%s', (_what, spec, rule) => {
    expect(faultsWith(true, spec).join('\n')).toContain(
      `is not allowed in the run of an outsider's change ("${rule}" of the pod policy`,
    );
    expect(faultsWith(false, spec)).toEqual([]);
  });
});

test("on the worker's own machine it is rejected", () => {
  expect(processErrors({ ...requestOf(true) }, undefined, true).join()).toContain(
    'run it on Kubernetes',
  );
});
