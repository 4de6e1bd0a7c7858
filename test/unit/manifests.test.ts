/** The manifests of an installation, checked against the pods that Holdfast creates and the hosts that these may reach. */
import { readFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import type {
  V1LabelSelector,
  V1NetworkPolicy,
  V1NetworkPolicyPeer,
} from '@kubernetes/client-node';
import { describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';

const MANIFESTS = [
  'namespaces.yaml',
  'rbac.yaml',
  'rbac-nodes.yaml',
  'rbac-quotas.yaml',
  'rbac-viewer.yaml',
  'worker.yaml',
  'webhook.yaml',
  'sweep.yaml',
];

const text = (path: string): string =>
  readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8');
const documents = (
  path: string,
): { kind: string; metadata: { name: string; namespace?: string } }[] =>
  parseAllDocuments(text(path)).map((document) => document.toJS() as never);
const policies = documents('namespaces.yaml').filter(
  ({ kind }) => kind === 'NetworkPolicy',
) as V1NetworkPolicy[];

interface End {
  readonly ip: string;
  /** Of a pod. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const RUNNER: End = {
  ip: '10.244.1.5',
  namespace: 'holdfast-runners',
  labels: podSpec(
    {
      identity: { workflowId: 'w', firstRunId: 'r', attempt: 1 },
      image: 'i',
      labels: {},
      terminationGracePeriodSeconds: 1,
    },
    {},
    'holdfast',
    undefined,
  ).metadata!.labels!,
};
const WORKER: End = { ip: '10.244.1.6', namespace: 'holdfast', labels: { app: 'holdfast-worker' } };
const SWEEP: End = { ip: '10.244.1.11', namespace: 'holdfast', labels: { app: 'holdfast-sweep' } };
const TEMPORAL: End = { ip: '10.244.1.7', namespace: 'temporal', labels: { app: 'temporal' } };
const DNS: End = { ip: '10.244.1.8', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } };
const INGRESS: End = { ip: '10.244.1.9', namespace: 'ingress-nginx', labels: {} };
const at = (ip: string): End => ({ ip });

/** https://kubernetes.io/docs/concepts/services-networking/network-policies/ */
function mayConnect(from: End, to: End, port: number): boolean {
  return allowed('Egress', from, to, port) && allowed('Ingress', to, from, port);
}

/** @param of - the end whose policies are evaluated @param peer - the other end */
function allowed(type: 'Egress' | 'Ingress', of: End, peer: End, port: number): boolean {
  const own = policies.filter(
    ({ metadata, spec }) =>
      metadata!.namespace === of.namespace &&
      spec!.policyTypes!.includes(type) &&
      selects(spec!.podSelector!, of.labels ?? {}),
  );
  if (own.length === 0) return true;
  const rules = own.flatMap(
    ({ spec }) => (type === 'Egress' ? spec!.egress : spec!.ingress) ?? [],
  ) as { to?: V1NetworkPolicyPeer[]; from?: V1NetworkPolicyPeer[]; ports?: { port: number }[] }[];
  return rules.some(
    ({ to, from, ports }) =>
      ((to ?? from)?.some((each) => isPeer(each, peer)) ?? true) &&
      (ports?.some((each) => each.port === port) ?? true),
  );
}

function isPeer(
  { ipBlock, namespaceSelector, podSelector }: V1NetworkPolicyPeer,
  { ip, namespace, labels = {} }: End,
): boolean {
  if (ipBlock !== undefined) return within([ipBlock.cidr], ip) && !within(ipBlock.except ?? [], ip);
  if (namespace === undefined) return false;
  return (
    selects(namespaceSelector ?? {}, { 'kubernetes.io/metadata.name': namespace }) &&
    selects(podSelector ?? {}, labels)
  );
}

function within(blocks: readonly string[], ip: string): boolean {
  const family = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');
  const list = new BlockList();
  for (const block of blocks) {
    const [net = '', prefix] = block.split('/');
    // Node also treats each IPv4 address as an IPv6 address.
    if (family(net) === family(ip)) list.addSubnet(net, Number(prefix), family(net));
  }
  return list.check(ip, family(ip));
}

function selects(
  { matchLabels = {}, matchExpressions = [], ...unknown }: V1LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  if (
    Object.keys(unknown).length > 0 ||
    matchExpressions.some(({ operator }) => operator !== 'NotIn')
  )
    throw new Error('a selector that this test does not know');
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, values = [] }) => !values.includes(labels[key] ?? ''))
  );
}

describe('network policies', () => {
  test.each<[string, End, End, number, boolean]>([
    ['a runner reaches the DNS', RUNNER, DNS, 53, true],
    ['a runner reaches another port of the DNS pod', RUNNER, DNS, 9153, false],
    ['a runner reaches GitHub', RUNNER, at('140.82.112.3'), 443, true],
    ['a runner reaches GitHub by IPv6', RUNNER, at('2606:50c0:8000::153'), 443, true],
    ['a runner reaches a server by SSH', RUNNER, at('140.82.112.3'), 22, true],
    ['a runner reaches the metadata service', RUNNER, at('169.254.169.254'), 80, false],
    ["a runner reaches its machine's host on Azure", RUNNER, at('168.63.129.16'), 80, false],
    ['a runner reaches the metadata service by IPv6', RUNNER, at('fd00:ec2::254'), 80, false],
    ['a runner reaches the metadata service by NAT64', RUNNER, at('64:ff9b::a9fe:a9fe'), 80, false],
    ['a runner reaches a private address by NAT64', RUNNER, at('64:ff9b::10.96.0.1'), 443, false],
    ['a runner reaches GitHub by NAT64', RUNNER, at('64:ff9b::140.82.112.3'), 443, true],
    ['a runner reaches the API server', RUNNER, at('10.96.0.1'), 443, false],
    ['a runner reaches the API server on its node', RUNNER, at('192.168.1.10'), 6443, false],
    ['a runner reaches Temporal', RUNNER, TEMPORAL, 7233, false],
    ['a runner reaches a worker', RUNNER, WORKER, 8080, false],
    ['a runner reaches the webhook port of a worker', RUNNER, WORKER, 8081, false],
    ['a runner reaches another runner', RUNNER, { ...RUNNER, ip: '10.244.1.10' }, 8078, false],
    [
      'a runner whose template has other labels reaches Temporal',
      { ...RUNNER, labels: { app: 'holdfast-worker' } },
      TEMPORAL,
      7233,
      false,
    ],
    ['a worker reaches Temporal', WORKER, TEMPORAL, 7233, true],
    ['a worker reaches the API server', WORKER, at('10.96.0.1'), 443, true],
    ['a worker reaches the API server on its node', WORKER, at('192.168.1.10'), 6443, true],
    ['a worker reaches GitHub', WORKER, at('140.82.112.3'), 443, true],
    ['a worker reaches the DNS', WORKER, DNS, 53, true],
    ['a worker reaches the metadata service', WORKER, at('169.254.169.254'), 80, false],
    ['a worker reaches a database', WORKER, at('10.1.2.3'), 5432, false],
    ['a sweep reaches Temporal', SWEEP, TEMPORAL, 7233, true],
    ['a sweep reaches the metadata service', SWEEP, at('169.254.169.254'), 80, false],
    ['an ingress controller reaches a sweep', INGRESS, SWEEP, 8080, false],
    ['a worker reaches a runner', WORKER, RUNNER, 8078, false],
    ['an ingress controller reaches the webhook port', INGRESS, WORKER, 8081, true],
    ['a scraper reaches the metrics port', INGRESS, WORKER, 8080, true],
    ['an ingress controller reaches another port', INGRESS, WORKER, 9090, false],
  ])('%s', (_what, from, to, port, expected) => {
    expect(mayConnect(from, to, port)).toBe(expected);
  });

  test('are in the namespaces that the other manifests name', () => {
    const all = MANIFESTS.flatMap(documents);
    const made = all
      .filter(({ kind }) => kind === 'Namespace')
      .map(({ metadata }) => metadata.name);
    expect(made).toEqual(['holdfast', 'holdfast-runners']);
    const named = all.flatMap(({ metadata }) => metadata.namespace ?? []);
    expect(named.length).toBeGreaterThan(0);
    for (const namespace of named) expect([...made, 'kube-system']).toContain(namespace);
  });
});

test('the read-only role has no verb that changes objects, and cannot read Secrets or logs', () => {
  const rules = (
    documents('rbac-viewer.yaml') as { rules?: { resources: string[]; verbs: string[] }[] }[]
  ).flatMap(({ rules: own = [] }) => own);
  expect(rules.length).toBeGreaterThan(0);
  for (const { resources, verbs } of rules) {
    for (const verb of verbs) expect(['get', 'list', 'watch']).toContain(verb);
    for (const resource of resources) expect(['pods', 'events']).toContain(resource);
  }
});

describe('the permissions of', () => {
  const settingsOf = (yaml: string): string[] =>
    [...yaml.matchAll(/\{ name: HOLDFAST_KUBERNETES_NAMESPACE, value: (\S+) \}/g)].map(
      ([, value]) => value ?? '',
    );

  test.each([
    ['the worker', 'rbac.yaml', 'worker.yaml'],
    ['the sweep', 'sweep.yaml', 'sweep.yaml'],
  ])(
    '%s are in the namespaces of its runners, and its service account is in its own',
    (_who, manifest, run) => {
      const all = documents(manifest) as {
        kind: string;
        metadata: { name: string; namespace?: string };
        subjects?: { name: string; namespace: string }[];
      }[];
      const placed = (wanted: string): string[] =>
        all.flatMap(({ kind, metadata }) =>
          kind === wanted && metadata.namespace !== 'kube-system' ? [metadata.namespace ?? ''] : [],
        );
      expect(settingsOf(text(run))).toEqual(['holdfast-runners']);
      expect({
        roles: placed('Role'),
        bindings: placed('RoleBinding'),
        accounts: placed('ServiceAccount'),
      }).toEqual({
        roles: ['holdfast-runners'],
        bindings: ['holdfast-runners'],
        accounts: ['holdfast'],
      });
      for (const { name, namespace } of all.flatMap(({ subjects = [] }) => subjects))
        expect({ name, namespace }).toEqual({
          name: all.find(({ kind }) => kind === 'ServiceAccount')?.metadata.name,
          namespace: 'holdfast',
        });
    },
  );
});
