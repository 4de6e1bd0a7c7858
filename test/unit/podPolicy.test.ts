import type { V1PodSpec } from '@kubernetes/client-node';
import { describe, expect, test } from '@jest/globals';
import {
  matchesAny,
  patternSource,
} from '../../activities/compute/kubernetes/podPolicy/patterns.ts';
import {
  podPolicySchema,
  DEFAULT_POD_POLICY,
} from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { POD_RULES } from '../../activities/compute/kubernetes/podPolicy/podRules.ts';
import {
  toPolicyInput,
  installationImages,
  policyFor,
  policyViolations,
} from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { parseQuantity } from '../../activities/compute/kubernetes/podPolicy/quantity.ts';
import {
  OWN_CLAIM,
  OWN_IMAGE,
  OWN_STORE,
  OWN_STORE_SECRET,
  POD,
  podOf,
  POLICY_CASES,
  policyOf,
} from '../support/policyPods.ts';

const own = {
  images: [OWN_IMAGE],
  namespaces: ['ci'],
  store: OWN_STORE,
  storeSecret: OWN_STORE_SECRET,
};

describe('a pod may have', () => {
  test.each(POLICY_CASES.map((each) => [each.what, each] as const))('%s', (_what, each) => {
    const pod = {
      ...each.metadata,
      spec: podOf(each.spec),
      name: POD,
      namespace: 'ci',
      claims: [OWN_CLAIM],
    };
    expect(
      POD_RULES.filter(
        (rule) => rule.violations(pod, policyFor(pod, policyOf(each)), own).length > 0,
      ).map(({ field }) => field),
    ).toEqual(each.rejectedBy);
    for (const fault of policyViolations(pod, policyOf(each), own))
      expect(fault).toMatch(
        /^[A-Za-z[\]0-9./-]+: .+ is not allowed by "\w+" of the worker's pod policy; leave it out, or have it allowed there \(HOLDFAST_POD_POLICY_FILE\)$/,
      );
  });

  test('every rule rejects one of the cases, and every field of the policy has a rule', () => {
    const rejecting = new Set(POLICY_CASES.flatMap(({ rejectedBy }) => rejectedBy));
    expect(
      POD_RULES.map(({ field }) => field).filter((field) => !(rejecting as Set<string>).has(field)),
    ).toEqual([
      'namespaces',
      // Rules that the API server cannot check. Each has a separate test below.
      'template',
      'overrides',
    ]);
    expect(POD_RULES.map(({ field }) => field).toSorted()).toEqual(
      // From the worker's settings.
      ['namespaces', ...Object.keys(DEFAULT_POD_POLICY)]
        // `userNamespaces` is part of `host`.
        .filter((field) => field !== 'rules' && field !== 'userNamespaces')
        .toSorted(),
    );
  });

  test('another namespace, another runtime class', () => {
    const pod = {
      spec: podOf({ runtimeClassName: 'host' }),
      name: POD,
      namespace: 'kube-system',
      claims: [OWN_CLAIM],
    };
    expect(
      policyViolations(pod, podPolicySchema.parse({ runtimeClasses: ['gvisor'] }), own),
    ).toEqual([
      expect.stringMatching(/^namespace: "kube-system" is not allowed by HOLDFAST_NAMESPACES/),
      expect.stringMatching(/^runtimeClassName: "host" is not allowed by "runtimeClasses"/),
    ]);
    expect(
      policyViolations(
        { ...pod, namespace: 'ci-web' },
        podPolicySchema.parse({ runtimeClasses: ['host'] }),
        { ...own, namespaces: ['ci', 'ci-web'] },
      ),
    ).toEqual([]);
  });
});

test('a new claim may have a data source or a selector only where claims may be used by name', () => {
  const identity = { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 };
  const claim = {
    name: 'work',
    mountPath: '/work',
    storage: '1Gi',
    dataSource: {
      apiGroup: 'snapshot.storage.k8s.io',
      kind: 'VolumeSnapshot',
      name: 'cache-monday',
    },
  };
  const named = {
    name: 'cache',
    mountPath: '/cache',
    storage: '1Gi',
    claim: 'cache-1',
    selector: { matchLabels: { disk: 'nvme' } },
  };
  const judge = (policy: object, untrusted?: true): string[] => {
    const request = {
      identity,
      terminationGracePeriodSeconds: 1,
      labels: {},
      volumeClaims: [claim, named],
      ...(untrusted && { untrusted }),
    };
    return policyViolations(
      toPolicyInput({ metadata: { name: POD }, spec: podOf({ volumes: [] }) }, request, 'ci'),
      podPolicySchema.parse(policy),
      own,
    ).filter((fault) => fault.startsWith('volumeClaims'));
  };
  const [copy, chosen] = [
    'volumeClaims[0].dataSource: the VolumeSnapshot "cache-monday" is not',
    'volumeClaims[1].selector: volumes by their labels, for the claim "cache-1" is not',
  ];
  expect(judge({})).toEqual([expect.stringContaining(copy), expect.stringContaining(chosen)]);
  expect(judge({ claims: ['cache-1'] })).toEqual([expect.stringContaining(copy)]);
  expect(judge({ claims: ['cache-*'] })).toEqual([]);
  expect(judge({ claims: ['cache-*'] }, true)).toEqual([
    expect.stringContaining(`${copy} allowed in the run of an outsider's change`),
    expect.stringContaining(chosen),
  ]);
});

test('a template that is not a PodSpec is not allowed, and null fields count as absent', () => {
  const request = {
    identity: { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 },
    terminationGracePeriodSeconds: 1,
    labels: {},
  };
  const judge = (spec: object): string[] =>
    policyViolations(
      toPolicyInput({ metadata: { name: POD }, spec: { ...spec } as V1PodSpec }, request, 'ci'),
      DEFAULT_POD_POLICY,
      own,
    );
  const runner = { name: 'runner', image: OWN_IMAGE };
  expect(
    judge({
      automountServiceAccountToken: false,
      securityContext: null,
      volumes: null,
      containers: [{ ...runner, securityContext: null, env: null, ports: null }],
    }),
  ).toEqual([]);
  for (const odd of [
    { ports: 5 },
    { env: 'all' },
    { envFrom: {} },
    { securityContext: { capabilities: { add: 1 } } },
  ]) {
    expect(
      judge({ automountServiceAccountToken: false, containers: [{ ...runner, ...odd }] }),
    ).toEqual([expect.stringMatching(/^pod: does not match/)]);
  }
});

test.each([
  [['a*c'], 'abc', true],
  [['a*c'], 'abcd', false],
  [['*'], '', true],
  [['a.c'], 'abc', false],
  [['(a|b)[c]'], '(a|b)[c]', true],
  [['a', 'b'], 'b', true],
  [['a*'], 'a\nb', true],
  [['a*b*a'], 'aba', true],
  [['aba*ba'], 'aba', false],
  [['*b*'], 'b', true],
  [['*a*b*c'], 'abxc', true],
  [['*a*b*c'], 'bac', false],
])('the patterns %j and %j: %s, and the API server agrees', (patterns, name, is) => {
  expect(matchesAny(patterns, name)).toBe(is);
  expect(new RegExp(patternSource(patterns), 's').test(name)).toBe(is);
});

test('without a pattern not even an empty name is allowed', () => {
  expect(matchesAny([], '')).toBe(false);
});

test('matching any name takes little time', () => {
  const before = process.threadCpuUsage();
  expect(matchesAny(['a*a*a*a*a*a*a*b'], 'a'.repeat(500))).toBe(false);
  const { user, system } = process.threadCpuUsage(before);
  expect(user + system).toBeLessThan(1e6);
});

test.each([
  ['2', 2],
  [2, 2],
  ['500m', 0.5],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['10G', 1e10],
  ['1e3', 1e3],
  ['.5', 0.5],
  ['xm', undefined],
  ['1Zi', undefined],
  ['', undefined],
  ['toString', undefined],
  [null, undefined],
  [{}, undefined],
])('the quantity %j is %s', (quantity, expected) => expect(parseQuantity(quantity)).toBe(expected));

test.each([
  ['1.5Gi', '2Gi', []],
  ['2.5Gi', '2Gi', ['containers[0].resources.limits.memory: 2.5Gi, where at most 2Gi is allowed']],
  ['1Gi', '1.5Gi', []],
  [
    'muchm',
    '1.5Gi',
    ['containers[0].resources.limits.memory: no quantity, where at most 1.5Gi is allowed'],
  ],
  [
    { a: 1 },
    '1Gi',
    ['containers[0].resources.limits.memory: no quantity, where at most 1Gi is allowed'],
  ],
])('a limit of %j under a ceiling of %s', (memory, most, expected) => {
  const spec = podOf({ container: { resources: { limits: { memory: memory as string } } } });
  const faults = policyViolations(
    { spec, name: POD, namespace: 'ci', claims: [OWN_CLAIM] },
    podPolicySchema.parse({ resources: { memory: most } }),
    own,
  );
  expect(faults.map((fault) => fault.split(' is not')[0])).toEqual(expected);
});

test.each<[string, Parameters<typeof podOf>[0]]>([
  ['claim', { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: {} as string } }] }],
  ['path of the node', { volumes: [{ name: 'a', hostPath: { path: {} as string } }] }],
  ['procMount', { container: { securityContext: { procMount: {} as string } } }],
])('a %s that is not a string is not allowed', (_what, parts) => {
  expect(
    policyViolations(
      { spec: podOf(parts), name: POD, namespace: 'ci', claims: [] },
      podPolicySchema.parse({ claims: ['*'] }),
      own,
    ),
  ).toEqual([expect.stringMatching(/^pod: does not match/)]);
});

test('a very long name is cut in the message', () => {
  const faults = policyViolations(
    {
      spec: podOf({ volumes: [{ name: 'a', secret: { secretName: 'x'.repeat(5_000) } }] }),
      name: POD,
      namespace: 'ci',
      claims: [],
    },
    podPolicySchema.parse({}),
    own,
  );
  expect(faults).toContainEqual(
    expect.stringMatching(
      /^volumes\[\d\]\.secret: the Secret "x{400,500} … is not allowed by "secrets"/,
    ),
  );
});

test('the error of an invalid policy names the field and the fix', () => {
  const { error } = podPolicySchema.safeParse({
    imagse: [],
    host: ['all'],
    resources: { cpu: 'much' },
    hostPaths: ['/a/../b'],
    capabilities: ['cap_net'],
  });
  expect(error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^host\.0: /),
      expect.stringMatching(/^resources\.cpu: /),
      expect.stringMatching(/^hostPaths\.0: must be an absolute path/),
      expect.stringMatching(/^capabilities\.0: /),
      expect.stringMatching(/imagse/),
    ]),
  );
});

test("the images of the worker's settings are always allowed", () => {
  const template = {
    spec: {
      containers: [{ name: 'dind', image: 'dind:1' }],
      initContainers: [{ name: 'init', image: 'init:1' }],
    },
  };
  expect(installationImages({ image: 'a', template, supervisor: { image: 's' } })).toEqual([
    'a',
    's',
    'dind:1',
    'init:1',
  ]);
});
