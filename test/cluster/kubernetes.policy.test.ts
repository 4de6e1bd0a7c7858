import { randomUUID } from 'node:crypto';
import {
  CoreV1Api,
  KubernetesObjectApi,
  PatchStrategy,
  RbacAuthorizationV1Api,
  setHeaderOptions,
  type KubernetesObject,
  type V1ValidatingAdmissionPolicy,
  type V1ObjectMeta,
  type V1PodSpec,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import {
  admissionPolicy,
  jobPodAdmissionPolicy,
} from '../../activities/compute/kubernetes/podPolicy/admissionPolicy.ts';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import {
  HARNESS_POLICY,
  startKubernetesHarness,
  type KubernetesHarness,
} from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
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
import { until } from '../support/until.ts';

/** The same pods before the API server: each policy as a ValidatingAdmissionPolicy over a service account of its own. Nothing is stored. */
await describeWithLab('pod policies as admission policies', { kubernetes: true }, (lab) => {
  const id = `policy-${randomUUID().slice(0, 8)}`;
  const policies = [
    ...new Map(POLICY_CASES.map((each) => [JSON.stringify(each.policy), policyOf(each)])),
  ];
  const accountOf = (policy: object): string =>
    `worker-${policies.findIndex(([text]) => text === JSON.stringify(policy))}`;
  const made: KubernetesObject[] = [];
  let core: CoreV1Api;
  let objects: KubernetesObjectApi;

  /** @returns the rule that denies it, or what else the API server says; `undefined`: it may be */
  async function judge(
    account: string,
    spec: V1PodSpec,
    { namespace = id, metadata = {} }: { namespace?: string; metadata?: object } = {},
  ): Promise<string | undefined> {
    try {
      await core.createNamespacedPod(
        { namespace, body: { metadata: { name: POD, ...metadata }, spec }, dryRun: 'All' },
        setHeaderOptions('Impersonate-User', `system:serviceaccount:${id}:${account}`),
      );
      return undefined;
    } catch (error) {
      const text = String((error as { body?: unknown }).body ?? error);
      return /not allowed by \\+"(\w+)\\+" of Holdfast's pod policy/.exec(text)?.[1] ?? text;
    }
  }

  beforeAll(async () => {
    const kubeConfig = loadKubeConfig({ path: lab.kubernetes!.kubeconfig });
    core = kubeConfig.makeApiClient(CoreV1Api);
    objects = kubeConfig.makeApiClient(KubernetesObjectApi);
    await core.createNamespace({ body: { metadata: { name: id } } });
    const accounts = policies.map((_policy, index) => ({
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'User',
      name: `system:serviceaccount:${id}:worker-${index}`,
    }));
    const roleRef = {
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'ClusterRole',
      name: 'cluster-admin',
    };
    made.push(
      await kubeConfig.makeApiClient(RbacAuthorizationV1Api).createClusterRoleBinding({
        body: { metadata: { name: id }, subjects: accounts, roleRef },
      }),
    );
    for (const name of ['default', 'deployer'])
      await until(
        `the account ${name}`,
        async () =>
          await core
            .createNamespacedServiceAccount({ namespace: id, body: { metadata: { name } } })
            .then(
              () => true,
              (error: { code?: number }) => error.code === 409,
            ),
      );
    made.push(
      await objects.create({
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: { name: 'runc' },
        handler: 'runc',
      } as KubernetesObject),
    );
    for (const [text, policy] of policies) {
      const account = accountOf(JSON.parse(text) as object);
      for (const object of admissionPolicy(
        policy,
        { images: [OWN_IMAGE], namespaces: [id], store: OWN_STORE, storeSecret: OWN_STORE_SECRET },
        { name: `${id}-${account}`, serviceAccount: `${id}/${account}` },
      ))
        made.push(await objects.create(object as KubernetesObject));
    }
    for (const [text] of policies)
      await until(
        'the policy to be in force',
        async () =>
          (await judge(accountOf(JSON.parse(text) as object), podOf({}), {
            namespace: 'default',
          })) === 'namespaces',
      );
  }, 120_000);

  afterAll(async () => {
    for (const object of made.toReversed())
      await objects.delete({
        ...object,
        apiVersion: object.apiVersion ?? 'rbac.authorization.k8s.io/v1',
        kind: object.kind ?? 'ClusterRoleBinding',
      });
    await core.deleteNamespace({ name: id });
  });

  test.each(POLICY_CASES.map((each) => [each.what, each] as const))(
    '%s',
    async (_what, { spec, metadata, policy, rejectedBy }) => {
      expect(
        await judge(accountOf(policy), podOf(spec), metadata === undefined ? {} : { metadata }),
      ).toBe(rejectedBy[0]);
    },
  );

  test.each([
    ['of its own', {}, {}, true],
    [
      'a copy of a claim',
      { dataSource: { kind: 'PersistentVolumeClaim', name: 'cache-3' } },
      {},
      false,
    ],
    [
      'a copy of a claim that may be',
      { dataSource: { kind: 'PersistentVolumeClaim', name: 'cache-3' } },
      { claims: ['cache-*'] },
      true,
    ],
    ['a volume by its labels', { selector: { matchLabels: { disk: 'nvme' } } }, {}, false],
    [
      'a volume by its labels, for a claim that may be',
      { selector: { matchLabels: { disk: 'nvme' } } },
      { claims: ['cache-*'] },
      true,
    ],
  ])('a claim, %s', async (_what, more, policy, allowed) => {
    const spec = {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...more,
    };
    const making = core.createNamespacedPersistentVolumeClaim(
      { namespace: id, body: { metadata: { name: 'cache-9' }, spec }, dryRun: 'All' },
      setHeaderOptions('Impersonate-User', `system:serviceaccount:${id}:${accountOf(policy)}`),
    );
    const refused = {
      body: expect.stringContaining('not allowed by \\"claims\\" of Holdfast\'s pod policy'),
    };
    expect(await making.catch((error: unknown) => error)).toMatchObject(
      allowed ? { kind: 'PersistentVolumeClaim' } : refused,
    );
  });

  describe('an update', () => {
    const POD_NAME = 'made-before';
    const asWorker = (body: object): Promise<unknown> =>
      core.patchNamespacedPod(
        { name: POD_NAME, namespace: id, body, dryRun: 'All' },
        setHeaderOptions(
          'Content-Type',
          PatchStrategy.StrategicMergePatch,
          setHeaderOptions('Impersonate-User', `system:serviceaccount:${id}:${accountOf({})}`),
        ),
      );
    beforeAll(async () => {
      await core.createNamespacedPod({
        namespace: id,
        body: {
          metadata: { name: POD_NAME, labels: { theirs: 'a' }, annotations: { theirs: 'a' } },
          spec: podOf({ nodeSelector: { pool: 'infra' } }),
        },
      });
    });
    test.each<[what: string, body: object]>([
      [
        "of Holdfast's annotations",
        { metadata: { annotations: { 'holdfast.dev/stop-reason': 'x' } } },
      ],
      [
        'of an owner',
        { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' }] } },
      ],
    ])('%s is allowed, whatever others have written', async (_what, body) => {
      await expect(asWorker(body)).resolves.toMatchObject({ kind: 'Pod' });
    });
    test.each<[what: string, field: string, body: object]>([
      ['of the image', 'fields', { spec: { containers: [{ name: 'runner', image: 'evil:1' }] } }],
      ['of a label', 'labels', { metadata: { labels: { theirs: 'b' } } }],
      ['of an annotation', 'annotations', { metadata: { annotations: { more: 'b' } } }],
    ])('%s is not allowed', async (_what, field, body) => {
      await expect(asWorker(body)).rejects.toMatchObject({
        body: expect.stringContaining(`not allowed by \\"${field}\\"`),
      });
    });
  });

  describe("objects of a job's hooks, created with the account of its set", () => {
    const JOB_POD = 'runner-a-0123456789-workflow';
    const ACCOUNT = 'deployer';
    const as = setHeaderOptions('Impersonate-User', `system:serviceaccount:${id}:${ACCOUNT}`);
    /** As the hooks make it, with the token of its account that the API server mounts. */
    const create = async (
      more: Partial<V1PodSpec>,
      container: object = {},
      metadata: Pick<V1ObjectMeta, 'labels' | 'annotations'> = {},
    ): Promise<unknown> =>
      await core
        .createNamespacedPod(
          {
            namespace: id,
            body: {
              metadata: {
                name: JOB_POD,
                ...metadata,
                labels: { 'runner-pod': 'runner-a-0123456789', ...metadata.labels },
              },
              spec: {
                restartPolicy: 'Never',
                nodeName: 'n',
                imagePullSecrets: [{ name: 'runner-a-secret-01234567' }],
                volumes: [{ name: 'work', persistentVolumeClaim: { claimName: OWN_CLAIM } }],
                ...more,
                containers: [
                  {
                    name: 'job',
                    image: 'node:24',
                    command: ['tail'],
                    volumeMounts: [{ name: 'work', mountPath: '/__w', subPath: 'a' }],
                    ...container,
                  },
                ],
              },
            },
            dryRun: 'All',
          },
          as,
        )
        .catch((error: unknown) => error);
    const createSecret = async (type: string, labels: object = {}): Promise<unknown> =>
      await core
        .createNamespacedSecret(
          {
            namespace: id,
            body: {
              metadata: {
                name: 's',
                labels: { ...labels },
                annotations: { 'kubernetes.io/service-account.name': 'default' },
              },
              type,
              ...(type.endsWith('json') && { stringData: { '.dockerconfigjson': '{}' } }),
            },
            dryRun: 'All',
          },
          as,
        )
        .catch((error: unknown) => error);
    const denied = (field: string): object => ({
      body: expect.stringContaining(`not allowed by \\"${field}\\"`),
    });
    beforeAll(async () => {
      made.push(
        await objects.create({
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRoleBinding',
          metadata: { name: `${id}-jobs` },
          subjects: [{ kind: 'ServiceAccount', namespace: id, name: ACCOUNT }],
          roleRef: {
            apiGroup: 'rbac.authorization.k8s.io',
            kind: 'ClusterRole',
            name: 'cluster-admin',
          },
        } as KubernetesObject),
      );
      for (const object of jobPodAdmissionPolicy(
        podPolicySchema.parse({ images: ['node:*'], serviceAccounts: [ACCOUNT] }),
        { images: [OWN_IMAGE], namespaces: ['other'] },
        { name: `${id}-jobs`, serviceAccount: `${id}/${ACCOUNT}` },
      ))
        made.push(await objects.create(object as KubernetesObject));
      const isRefused = (answer: unknown): boolean =>
        JSON.stringify(answer).includes('not allowed by');
      await until(
        'both policies to be in force',
        async () =>
          isRefused(await create({ hostNetwork: true })) &&
          isRefused(await createSecret('kubernetes.io/service-account-token')),
      );
    });

    test('can exist', async () => {
      expect(await create({})).toMatchObject({ kind: 'Pod' });
    });
    test.each<[what: string, field: string, spec: Partial<V1PodSpec>, container: object]>([
      ['a privileged container', 'privileged', {}, { securityContext: { privileged: true } }],
      [
        "the node's files",
        'hostPaths',
        { volumes: [{ name: 'work', hostPath: { path: '/' } }] },
        {},
      ],
      ["the node's processes", 'host', { hostPID: true }, {}],
      ['another image', 'images', {}, { image: 'evil:1' }],
      [
        "another set's claim",
        'claims',
        { volumes: [{ name: 'work', persistentVolumeClaim: { claimName: 'cache-1' } }] },
        {},
      ],
    ])('cannot have %s', async (_what, field, spec, container) => {
      expect(await create(spec, container)).toMatchObject(denied(field));
    });
    test.each([
      ['labels', { labels: { 'app.kubernetes.io/managed-by': 'holdfast' } }],
      ['labels', { labels: { 'holdfast.dev/installation': 'holdfast' } }],
      ['annotations', { annotations: { 'holdfast.dev/runner-id': '1' } }],
    ])('cannot have the %s of a runner: %j', async (field, metadata) => {
      expect(await create({}, {}, metadata)).toMatchObject(denied(field));
    });
    test("a Secret cannot have a runner's label", async () => {
      const labels = { 'app.kubernetes.io/managed-by': 'holdfast' };
      expect(await createSecret('Opaque', labels)).toMatchObject(denied('labels'));
    });
    test.each([
      ['kubernetes.io/dockerconfigjson', true],
      ['kubernetes.io/service-account-token', false],
    ])('a Secret of the type %s: %s', async (type, allowed) => {
      expect(await createSecret(type)).toMatchObject(
        allowed ? { kind: 'Secret' } : denied('secrets'),
      );
    });
  });

  test.each<[what: string, metadata: object]>([
    ['a finalizer', { finalizers: ['acme.com/mine'] }],
    ['an owner', { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' }] }],
  ])('a new pod does not have %s', async (_what, metadata) => {
    expect(await judge(accountOf({}), podOf({}), { metadata })).toBe('fields');
  });

  const secretRefused = { body: expect.stringContaining('not allowed by \\"secrets\\"') };
  test.each([
    ['Opaque', true],
    ['kubernetes.io/service-account-token', false],
    ['kubernetes.io/dockerconfigjson', false],
  ])('a Secret of the type %s: %s', async (type, allowed) => {
    const making = core.createNamespacedSecret(
      {
        namespace: id,
        body: {
          metadata: {
            name: 's',
            annotations: { 'kubernetes.io/service-account.name': 'deployer' },
          },
          type,
          ...(type.endsWith('dockerconfigjson') && { stringData: { '.dockerconfigjson': '{}' } }),
        },
        dryRun: 'All',
      },
      setHeaderOptions('Impersonate-User', `system:serviceaccount:${id}:${accountOf({})}`),
    );
    expect(await making.catch((error: unknown) => error)).toMatchObject(
      allowed ? { kind: 'Secret' } : secretRefused,
    );
  });

  test.each<[what: string, body: object, allowed: boolean]>([
    [
      'gets an owner',
      { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' }] } },
      true,
    ],
    ['gets no other content', { stringData: { '.dockerconfigjson': '{"auths":{}}' } }, false],
    ['gets no annotation', { metadata: { annotations: { a: 'b' } } }, false],
  ])('a Secret for image pulls that others have created %s', async (what, body, allowed) => {
    const name = `pull-${what.replaceAll(' ', '-')}`;
    await core.createNamespacedSecret({
      namespace: id,
      body: {
        metadata: { name },
        type: 'kubernetes.io/dockerconfigjson',
        stringData: { '.dockerconfigjson': '{}' },
      },
    });
    const changing = core.patchNamespacedSecret(
      { name, namespace: id, body, dryRun: 'All' },
      setHeaderOptions(
        'Content-Type',
        PatchStrategy.MergePatch,
        setHeaderOptions('Impersonate-User', `system:serviceaccount:${id}:${accountOf({})}`),
      ),
    );
    expect(await changing.catch((error: unknown) => error)).toMatchObject(
      allowed ? { kind: 'Secret' } : secretRefused,
    );
  });

  test('all expressions have the right type', async () => {
    const checked = (await objects.list(
      'admissionregistration.k8s.io/v1',
      'ValidatingAdmissionPolicy',
    )) as unknown as { items: V1ValidatingAdmissionPolicy[] };
    const own = checked.items.filter(({ metadata }) => metadata?.name?.startsWith(id) === true);
    expect(own.length).toBeGreaterThan(0);
    expect(
      own.flatMap(({ status }) =>
        (status?.typeChecking?.expressionWarnings ?? []).map(({ warning }) => warning),
      ),
    ).toEqual([]);
  });

  test('other users than the worker are not restricted', async () => {
    await expect(
      core.createNamespacedPod({
        namespace: id,
        body: { metadata: { name: POD }, spec: podOf({ hostPID: true }) },
        dryRun: 'All',
      }),
    ).resolves.toMatchObject({ kind: 'Pod' });
  });
});

await describeWithLab('a compute and its pod policy', { kubernetes: true }, (lab) => {
  let harness: KubernetesHarness;
  beforeAll(async () => {
    harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
  });
  afterAll(async () => await harness.close());

  test('a violation is a fault at admission, and no pod is created for any caller', async () => {
    const { core, namespace } = harness;
    const compute = harness.instance({ policy: HARNESS_POLICY });
    const request = {
      ...harness.request(harness.newIdentity()),
      template: {
        spec: {
          schedulerName: 'contract',
          serviceAccountName: 'default',
          automountServiceAccountToken: true,
          hostPID: true,
        },
      },
    };
    expect(compute.validate(request)).toEqual([
      expect.stringMatching(
        /^automountServiceAccountToken: its token is not allowed by "serviceAccounts"/,
      ),
      expect.stringMatching(/^hostPID: the node's pid is not allowed by "host"/),
    ]);
    await expect(compute.createPod(request, undefined)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('"serviceAccounts"'),
    });
    expect((await core.listNamespacedPod({ namespace })).items).toEqual([]);
  });
});
