import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { KubeConfig } from '@kubernetes/client-node';
import { parseAllDocuments } from 'yaml';
import type { ApiRequestMetrics } from '../../activities/compute/kubernetes/apiServer.ts';
import { checkPermissions, requiredPermissions } from '../../worker/checks/permissions.ts';
import type { Registration } from '../../activities/ports/ciServer.ts';
import { startApiProxy } from '../support/apiProxy.ts';
import { actAsShippedWorker, SHIPPED_MODES } from '../support/shippedRole.ts';
import { actAs, applyManifest } from '../support/clusterAccounts.ts';
import { ForwardProxy } from '../support/forwardProxy.ts';
import {
  HARNESS_POLICY,
  startKubernetesHarness,
  type KubernetesHarness,
} from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { recordWatch } from '../support/recordedWatch.ts';
import { until } from '../support/until.ts';
import type { PodRequest } from '../../core/domain/pod.ts';

const registration: Registration = {
  runnerName: 'blue-1',
  runnerId: '9',
  env: { ACTIONS_RUNNER_INPUT_JITCONFIG: 'very-secret', RUNNER_NAME: 'blue-1' },
};

await describeWithLab('kubernetes compute', { kubernetes: true }, (lab) => {
  let harness: KubernetesHarness;

  beforeEach(async () => {
    harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
  });
  afterEach(() => harness.close());

  const request = (more: Partial<PodRequest> = {}): PodRequest => ({
    ...harness.request(harness.newIdentity()),
    ...more,
  });

  test('an uneventful lifecycle takes four requests in addition to the shared watch', async () => {
    const measures: ApiRequestMetrics[] = [];
    const compute = harness.instance({ onRequest: (measure) => measures.push(measure) });
    const watch = await recordWatch(compute);
    await until('synced', () => watch.synced());
    measures.length = 0;
    const ask = request();

    const pod = await compute.createPod(
      ask,
      await compute.storeRegistrationSecret(ask.identity, registration),
    );
    await watch.until('created', ({ pod: { uid } }) => uid === pod.uid);
    expect((await compute.getPod(pod))?.ended).toBe(false);
    await harness.makeRunning(pod);
    await watch.until('started', (event) => event.pod.startedAt !== undefined);
    expect((await compute.getPod(pod))?.startedAt).toBeDefined();
    await harness.end(pod, 0);
    await watch.until('ended', (event) => event.pod.ended);
    expect(await compute.deletePod(pod)).toBe('deleted');
    await compute.deleteRegistrationSecret(ask.identity);
    await watch.until('gone', (event) => event.pod.deleted);
    expect(await compute.getPod(pod)).toBeUndefined();
    // Nobody has to be asked to delete what is known to be gone.
    expect(await compute.deletePod(pod)).toBe('deleted');

    expect(measures.map(({ verb, resource, status }) => `${verb} ${resource} ${status}`)).toEqual([
      'create secrets 201',
      'create pods 201',
      'delete pods 200',
      'delete secrets 200',
    ]);
    expect(measures.every(({ ms }) => ms > 0)).toBe(true);
    await watch.stop();
  });

  test('the registration is in the Secret and in no pod', async () => {
    const ask = request();
    const pod = await harness.compute.createPod(
      ask,
      await harness.compute.storeRegistrationSecret(ask.identity, registration),
    );
    const stored = await harness.core.readNamespacedPod({
      name: pod.name,
      namespace: harness.namespace,
    });
    expect(JSON.stringify(stored)).not.toContain('very-secret');
    expect(JSON.stringify(stored)).not.toContain(Buffer.from('very-secret').toString('base64'));
    expect(stored.spec!.containers[0]!.env).toEqual([
      {
        name: 'ACTIONS_RUNNER_INPUT_JITCONFIG',
        valueFrom: { secretKeyRef: { name: pod.name, key: 'ACTIONS_RUNNER_INPUT_JITCONFIG' } },
      },
      { name: 'RUNNER_NAME', valueFrom: { secretKeyRef: { name: pod.name, key: 'RUNNER_NAME' } } },
    ]);
    const secret = await harness.core.readNamespacedSecret({
      name: pod.name,
      namespace: harness.namespace,
    });
    expect(Buffer.from(secret.data!['ACTIONS_RUNNER_INPUT_JITCONFIG']!, 'base64').toString()).toBe(
      'very-secret',
    );
    expect(secret.metadata!.labels).toEqual({
      'app.kubernetes.io/managed-by': 'holdfast',
      'holdfast.dev/installation': 'contract',
      'holdfast.dev/workflow': ask.identity.workflowId,
    });
    expect(JSON.stringify(harness.log)).not.toContain('very-secret');
  });

  describe('deletePod returns', () => {
    test('gone for a pod without a node and for one that has ended; terminating for a running one and for one with a finalizer', async () => {
      const create = () => harness.compute.createPod(request(), undefined);
      const [unscheduled, ended, running, kept] = [
        await create(),
        await create(),
        await create(),
        await create(),
      ];
      for (const pod of [ended, running]) await harness.makeRunning(pod);
      await harness.end(ended, 0);
      await harness.core.patchNamespacedPod({
        name: kept.name,
        namespace: harness.namespace,
        body: [{ op: 'add', path: '/metadata/finalizers', value: ['example.com/keep'] }],
      });
      expect(await harness.compute.deletePod(unscheduled)).toBe('deleted');
      expect(await harness.compute.deletePod(ended)).toBe('deleted');
      expect(await harness.compute.deletePod(running)).toBe('terminating');
      expect(await harness.compute.deletePod(kept)).toBe('terminating');
      expect(await harness.compute.deletePod(running, { gracePeriodSeconds: 0 })).toBe('deleted');
      expect((await harness.compute.list()).map(({ uid }) => uid)).toEqual([kept.uid]);
      await harness.core.patchNamespacedPod({
        name: kept.name,
        namespace: harness.namespace,
        body: [{ op: 'remove', path: '/metadata/finalizers' }],
      });
    });
  });

  describe('creation is rejected with', () => {
    test('the name of a misspelled field of the template', async () => {
      const ask = request({ template: { spec: { nodeSelectr: { a: 'b' } } } });
      await expect(harness.compute.createPod(ask, undefined)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringMatching(/^nodeSelectr: .* "fields"/),
      });
      // The API server knows it, too, where the policy allows any field.
      const open = harness.instance({ policy: { ...HARNESS_POLICY, fields: ['*'] } });
      await expect(open.createPod(ask, undefined)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('unknown field "spec.nodeSelectr"'),
      });
    });

    test('the name of an invalid value', async () => {
      const ask = request({
        template: {
          spec: { containers: [{ name: 'runner', resources: { limits: { memory: 'lots' } } }] },
        },
      });
      await expect(harness.compute.createPod(ask, undefined)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('quantities must match'),
      });
    });

    test('quota', async () => {
      const { core, namespace } = harness;
      await core.createNamespacedResourceQuota({
        namespace,
        body: { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } },
      });
      await until(
        'the quota is counted',
        async () =>
          (await core.readNamespacedResourceQuota({ name: 'none', namespace })).status?.hard !==
          undefined,
      );
      await expect(harness.compute.createPod(request(), undefined)).rejects.toMatchObject({
        kind: 'quota_exceeded',
        message: expect.stringContaining('exceeded quota: none'),
      });
    });

    test('Pod Security', async () => {
      await harness.core.patchNamespace({
        name: harness.namespace,
        body: [
          {
            op: 'add',
            path: '/metadata/labels/pod-security.kubernetes.io~1enforce',
            value: 'restricted',
          },
        ],
      });
      await until('it is enforced', async () => {
        const outcome = await harness.compute
          .createPod(request(), undefined)
          .catch((error: unknown) => error);
        return outcome instanceof Error;
      });
      await expect(harness.compute.createPod(request(), undefined)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('violates PodSecurity'),
      });
    });

    test('a namespace that the worker does not watch', async () => {
      await expect(
        harness.compute.createPod(request({ namespace: 'elsewhere' }), undefined),
      ).rejects.toMatchObject({ kind: 'invalid', message: expect.stringContaining('"elsewhere"') });
    });

    test('a missing namespace', async () => {
      const compute = harness.instance({ namespace: 'nowhere' });
      await expect(compute.createPod(request(), undefined)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('namespaces "nowhere" not found'),
      });
    });

    test('a pod with that name of another owner, which is not changed', async () => {
      const ask = request();
      const { core, namespace } = harness;
      await core.createNamespacedPod({
        namespace,
        body: {
          metadata: { name: harness.compute.podName(ask.identity) },
          spec: { containers: [{ name: 'a', image: 'b' }] },
        },
      });
      await expect(harness.compute.createPod(ask, undefined)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('belongs to another owner'),
      });
    });
  });

  test('another installation in the same namespace is ignored', async () => {
    await harness.instance({ installation: 'another' }).createPod(request(), undefined);
    expect(await harness.compute.list()).toEqual([]);
  });

  test('a list can have several pages', async () => {
    const made = await Promise.all(
      Array.from({ length: 12 }, () => harness.compute.createPod(request(), undefined)),
    );
    const proxy = await startApiProxy(harness.kubeConfig);
    try {
      // The page is cut down on its way; the continue token of the server itself leads to the rest.
      proxy.script(
        'list',
        ...Array.from({ length: 3 }, () => ({ kind: 'rewrite' as const, query: { limit: '5' } })),
      );
      const listed = await harness.instance({ kubeConfig: proxy.kubeConfig }).list();
      expect(listed.map(({ uid }) => uid).toSorted()).toEqual(
        made.map(({ uid }) => uid).toSorted(),
      );
      expect(proxy.seen).toHaveLength(3);
    } finally {
      await proxy.close();
    }
  });

  test('each of several namespaces has a list and a watch', async () => {
    const compute = harness.instance({
      namespace: 'default',
      otherNamespaces: [harness.namespace],
      installation: harness.namespace,
    });
    const pod = await compute.createPod(request({ namespace: harness.namespace }), undefined);
    expect(pod.namespace).toBe(harness.namespace);
    expect((await compute.list()).map(({ uid }) => uid)).toEqual([pod.uid]);
    expect(await compute.getPod(pod)).toMatchObject({ uid: pod.uid });
    const watch = await recordWatch(compute);
    await watch.until('seen', (event) => event.pod.uid === pod.uid);
    const another = await compute.createPod(request({ namespace: 'default' }), undefined);
    await watch.until('seen', (event) => event.pod.uid === another.uid);
    expect(await compute.deletePod(pod)).toBe('deleted');
    await watch.until('gone', (event) => event.pod.uid === pod.uid && event.pod.deleted === true);
    await watch.stop();
    expect((await compute.list()).map(({ uid }) => uid)).toEqual([another.uid]);
    expect(await compute.deletePod(another)).toBe('deleted');
    await expect(
      compute.createPod(request({ namespace: 'kube-system' }), undefined),
    ).rejects.toMatchObject({ kind: 'invalid' });
  });

  describe('a response that is not from the API server', () => {
    const CACHE = { name: 'cache', mountPath: '/cache' };
    test.each<[string, number, string]>([
      ["a proxy's 404", 404, '<html>404 Not Found</html>'],
      ["a gateway's 404 in JSON", 404, '{"code":404,"reason":"NotFound","message":"no route"}'],
      ['a login page', 200, '<html>please log in</html>'],
      ['an empty object', 200, '{}'],
      ["a proxy's 409", 409, '<html>conflict of uid</html>'],
    ])(
      '%s does not mean that a pod, its Secret or its node is missing',
      async (_what, status, body) => {
        const proxy = await startApiProxy(harness.kubeConfig);
        try {
          const compute = harness.instance({ kubeConfig: proxy.kubeConfig });
          const pod = await harness.compute.createPod(request(), undefined);
          await harness.makeRunning(pod);
          const identity = harness.newIdentity();
          await harness.compute.storeRegistrationSecret(identity, { runnerName: 'r', env: {} });
          const calls: ['other' | 'deletion', () => Promise<unknown>][] = [
            ['other', async () => await compute.getPod(pod)],
            ['deletion', async () => await compute.deletePod(pod)],
            ['other', async () => await compute.deletePod(pod, { stopReason: 'cancelled' })],
            ['other', async () => await compute.readRegistrationSecret(harness.newIdentity())],
            ['other', async () => await compute.deleteRegistrationSecret(identity)],
            ['deletion', async () => await compute.deleteRegistrationSecret(identity)],
            [
              'other',
              async () =>
                await compute.fenceClaims(harness.newIdentity(), [CACHE], {
                  podUid: pod.uid,
                  node: 'no-such-node',
                }),
            ],
            ['other', async () => await compute.nodeState('no-such-node')],
            ['other', async () => await compute.location()],
          ];
          for (const [kind, call] of calls) {
            proxy.script(kind, { kind: 'answer', status, body });
            await expect(call()).rejects.toMatchObject({
              name: 'ComputeError',
              kind: 'unavailable',
            });
          }
          // The same, asked of the server itself.
          expect((await compute.getPod(pod))?.uid).toBe(pod.uid);
          expect(await compute.nodeState('no-such-node')).toBe('deleted');
        } finally {
          await proxy.close();
        }
      },
    );
  });

  describe('an API server that does not respond', () => {
    test('is unavailable after the time limit', async () => {
      const proxy = await startApiProxy(harness.kubeConfig);
      try {
        const hasty = harness.instance({ kubeConfig: proxy.kubeConfig, timeoutMs: 200 });
        proxy.script('other', { kind: 'silence' });
        await expect(hasty.getPod({ name: 'a' })).rejects.toMatchObject({
          kind: 'unavailable',
          message: expect.stringContaining('no answer in time'),
        });
        const compute = harness.instance({ kubeConfig: proxy.kubeConfig });
        proxy.script('other', {
          kind: 'answer',
          status: 429,
          body: '',
          headers: { 'retry-after': '7' },
        });
        await expect(compute.getPod({ name: 'a' })).rejects.toMatchObject({
          kind: 'unavailable',
          retryAfterMs: 7000,
        });
        proxy.down = true;
        await expect(compute.getPod({ name: 'a' })).rejects.toMatchObject({ kind: 'unavailable' });
        proxy.down = false;
        expect(await compute.getPod({ name: 'a' })).toBeUndefined();
      } finally {
        await proxy.close();
      }
    });
  });

  test("the kubeconfig's proxy is used", async () => {
    const proxy = await new ForwardProxy().start();
    const cluster = {
      ...harness.kubeConfig.getCurrentCluster()!,
      proxyUrl: `http://${proxy.host}`,
    };
    const config = new KubeConfig();
    config.loadFromClusterAndUser(cluster, harness.kubeConfig.getCurrentUser()!);
    const compute = harness.instance({ kubeConfig: config });
    expect(await compute.list()).toEqual([]);
    const pod = await compute.createPod(request(), undefined);
    expect(await compute.deletePod(pod)).toBe('deleted');
    expect(proxy.passed.length).toBeGreaterThan(0);
    expect(new Set(proxy.passed)).toEqual(new Set([`CONNECT ${new URL(cluster.server).host}`]));
    await compute.close();
    await proxy.stop();
  });

  describe('permissions', () => {
    test('each missing permission is reported, and the fix is sufficient', async () => {
      await harness.core.createNamespacedServiceAccount({
        namespace: harness.namespace,
        body: { metadata: { name: 'worker' } },
      });
      const account = await actAs('worker', harness);
      const at = [{ namespace: harness.namespace, ...SHIPPED_MODES }];
      const report = await checkPermissions(account, at);
      expect(report.user).toBe(`system:serviceaccount:${harness.namespace}:worker`);
      expect(report.missing).toHaveLength(
        Object.values(requiredPermissions(SHIPPED_MODES)).flat().length + 1,
      );
      await expect(harness.instance({ kubeConfig: account }).location()).rejects.toMatchObject({
        kind: 'forbidden',
      });
      await expect(
        harness.instance({ kubeConfig: account }).createPod(request(), undefined),
      ).rejects.toMatchObject({ kind: 'forbidden' });
      await expect(
        harness.instance({ kubeConfig: account }).readRegistrationSecret(harness.newIdentity()),
      ).rejects.toMatchObject({ kind: 'forbidden' });

      const [, yaml] = /^kubectl apply -f - <<'END'\n(.*)END$/s.exec(report.fix!)!;
      await applyManifest(harness.kubeConfig, yaml!);
      await until(
        'the permissions are in force',
        async () => (await checkPermissions(account, at)).missing.length === 0,
      );
      const compute = harness.instance({ kubeConfig: account });
      expect(await compute.location()).toEqual(await harness.compute.location());
      const ask = request();
      const pod = await compute.createPod(
        ask,
        await compute.storeRegistrationSecret(ask.identity, registration),
      );
      const watch = await recordWatch(compute);
      await watch.until('seen', (event) => event.pod.uid === pod.uid);
      await watch.stop();
      expect(await compute.deletePod(pod)).toBe('deleted');
      await compute.deleteRegistrationSecret(ask.identity);
      const elsewhere = [{ namespace: 'default', ...SHIPPED_MODES }];
      expect((await checkPermissions(account, elsewhere)).missing).toHaveLength(
        Object.values(requiredPermissions(SHIPPED_MODES)).flat().length,
      );
    });

    test.each([
      ['rbac.yaml', SHIPPED_MODES],
      ['rbac-job-pods.yaml', { ownsJobPods: true }],
    ])('deploy/%s grants exactly the required ones', async (file, modes) => {
      const yaml = (await readFile(new URL(`../../deploy/${file}`, import.meta.url), 'utf8'))
        .replaceAll(/namespace: holdfast(-runners|-jobs)?\n/g, `namespace: ${harness.namespace}\n`)
        .replaceAll('in-holdfast\n', `in-${harness.namespace}\n`);
      const role = parseAllDocuments(yaml)
        .map(
          (document) => document.toJS() as { rules?: { resources: string[]; verbs: string[] }[] },
        )
        .find(({ rules }) => rules !== undefined);
      expect(
        Object.fromEntries(role!.rules!.map(({ resources, verbs }) => [resources[0], verbs])),
      ).toEqual(requiredPermissions(modes));
      await actAsShippedWorker(harness, { jobPods: modes.ownsJobPods });
    });

    test('rejected credentials are reported', async () => {
      const config = new KubeConfig();
      config.loadFromClusterAndUser(harness.kubeConfig.getCurrentCluster()!, {
        name: 'x',
        token: 'wrong',
      });
      await expect(
        checkPermissions(config, [{ namespace: 'default', ...SHIPPED_MODES }]),
      ).rejects.toMatchObject({
        kind: 'forbidden',
        message: expect.stringContaining('Unauthorized'),
      });
    });
  });
});
