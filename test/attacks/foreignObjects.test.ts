/** A workflow of anybody's own names what is not its runner's: pods, Secrets, claims, namespaces. Asked of the real API server, and of real folders. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { claimName, podName } from '../../activities/compute/naming.ts';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import type { OwnedPodRef, RunnerIdentity } from '../../core/domain/pod.ts';
import {
  HARNESS_POLICY,
  startKubernetesHarness,
  type KubernetesHarness,
} from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';

const CLAIM = { name: 'cache', mountPath: '/cache' };

await describeWithLab('objects of the cluster', { kubernetes: true }, (lab) => {
  let harness: KubernetesHarness;
  beforeAll(async () => {
    harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
  }, 120_000);
  afterAll(async () => await harness.close());

  /** A pod that somebody else has made. @returns its UID */
  async function podOfAnother(
    name: string,
    labels: Record<string, string>,
    annotations: Record<string, string>,
  ): Promise<string> {
    const { metadata } = await harness.core.createNamespacedPod({
      namespace: harness.namespace,
      body: {
        metadata: { name, labels, annotations },
        spec: { schedulerName: 'contract', containers: [{ name: 'runner', image: 'busybox' }] },
      },
    });
    return metadata?.uid ?? '';
  }
  const marks = (workflowId: string, installation = 'contract'): [object, object] => [
    { 'app.kubernetes.io/managed-by': 'holdfast', 'holdfast.dev/installation': installation },
    { 'holdfast.dev/workflow-id': workflowId },
  ];

  /** What is done to a pod that is named with its UID. */
  const VERBS: readonly (readonly [
    verb: string,
    ask: (compute: Compute, pod: OwnedPodRef) => Promise<unknown>,
  ])[] = [
    ['looked at', async (compute, pod) => await compute.getPod(pod)],
    ['deleted', async (compute, pod) => await compute.deletePod(pod)],
    ['killed', async (compute, pod) => await compute.deletePod(pod, { gracePeriodSeconds: 0 })],
    [
      'deleted unless it has started',
      async (compute, pod) => await compute.deletePod(pod, { unlessStarted: true }),
    ],
    [
      'told why it will be stopped',
      async (compute, pod) => await compute.deletePod(pod, { stopReason: 'cancelled' }),
    ],
    ['read the log of', async (compute, pod) => await compute.tailLog(pod, 100)],
    [
      'streamed the log of',
      async (compute, pod) => await compute.streamLog(pod, { signal: AbortSignal.timeout(10_000) }),
    ],
  ];

  test.each([
    ['without any mark', {}, {}],
    ['of another runner', ...marks('runner-victim')],
    ['of another installation, and of a workflow of that name', ...marks('runner-a', 'theirs')],
  ])('a pod %s is not changed by any request', async (what, labels, annotations) => {
    const name = `victim-${what.length}`;
    const uid = await podOfAnother(
      name,
      labels as Record<string, string>,
      annotations as Record<string, string>,
    );
    const { core, namespace } = harness;
    for (const [verb, ask] of VERBS) {
      const compute = harness.instance();
      const asked = ask(compute, { name, uid, workflowId: 'runner-a' });
      await expect(asked.then(() => verb)).rejects.toMatchObject({ kind: 'foreign' });
    }
    const { metadata } = await core.readNamespacedPod({ name, namespace });
    expect(metadata).toMatchObject({ uid });
    expect(metadata?.deletionTimestamp).toBeUndefined();
    expect(metadata?.annotations ?? {}).toEqual(annotations);
  });

  test('a pod that a watch has seen is not changed either', async () => {
    const compute = harness.instance();
    const watch = await compute.watch({ changed: () => undefined, relisted: () => undefined });
    try {
      const victim = await harness.compute.createPod(
        harness.request(harness.newIdentity()),
        undefined,
      );
      const foreign = { ...victim, workflowId: 'runner-a' };
      for (const [verb, ask] of VERBS)
        await expect(ask(compute, foreign).then(() => verb)).rejects.toMatchObject({
          kind: 'foreign',
        });
      expect(compute.getCachedPod?.(foreign)).toBeUndefined();
      expect(await compute.getPod(victim)).toMatchObject({ uid: victim.uid, terminating: false });
    } finally {
      await watch.stop();
    }
  });

  test.each(VERBS)('without a UID no pod is %s', async (_verb, ask) => {
    const victim = await harness.compute.createPod(
      harness.request(harness.newIdentity()),
      undefined,
    );
    const asked = ask(harness.instance(), { ...victim, uid: '' });
    // A look by the UID '' finds no pod.
    expect(await asked.then(String, ({ kind }: { kind: string }) => kind)).toMatch(
      /^(invalid|undefined|deleted)$/,
    );
    expect(await harness.compute.getPod(victim)).toMatchObject({ terminating: false });
  });

  test("neither a Secret nor a claim of others with the name of a runner's own is deleted", async () => {
    const { core, namespace } = harness;
    const identity = harness.newIdentity();
    const secret = podName(identity);
    const claim = claimName(identity, CLAIM.name);
    await core.createNamespacedSecret({ namespace, body: { metadata: { name: secret } } });
    await core.createNamespacedPersistentVolumeClaim({
      namespace,
      body: {
        metadata: { name: claim },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
      },
    });
    const compute = harness.instance({ policy: HARNESS_POLICY });
    await compute.deleteRegistrationSecret(identity);
    await compute.deleteClaims(identity, [CLAIM]);
    const writer = { podUid: 'u', node: 'n' };
    for (const wanted of [CLAIM, { ...CLAIM, claim }]) {
      for (const asked of [
        compute.fenceClaims(identity, [wanted], writer),
        compute.releaseClaims(identity, [wanted], writer),
        compute.claimWriters(identity, [wanted]),
      ])
        await expect(asked).rejects.toMatchObject({ kind: 'foreign' });
    }
    const left = await core.readNamespacedPersistentVolumeClaim({ namespace, name: claim });
    expect(left.metadata?.annotations).toBeUndefined();
    expect((await core.readNamespacedSecret({ namespace, name: secret })).metadata?.name).toBe(
      secret,
    );
  });

  test.each<[verb: string, (compute: Compute, namespace: string) => Promise<unknown>]>([
    ...VERBS.map(
      ([verb, ask]): [string, (compute: Compute, namespace: string) => Promise<unknown>] => [
        `a pod is ${verb}`,
        async (compute, namespace) =>
          await ask(compute, { name: 'coredns-0', uid: 'u', namespace, workflowId: 'runner-a' }),
      ],
    ),
    [
      'a pod is made',
      async (compute, namespace) =>
        await compute.createPod(
          { ...harness.request(harness.newIdentity()), namespace },
          undefined,
        ),
    ],
    [
      'a Secret is read',
      async (compute, namespace) =>
        await compute.readRegistrationSecret(harness.newIdentity(), namespace),
    ],
    [
      'a Secret is made',
      async (compute, namespace) =>
        await compute.storeRegistrationSecret(
          harness.newIdentity(),
          { runnerName: 'r', env: {} },
          namespace,
        ),
    ],
    [
      'a Secret is deleted',
      async (compute, namespace) =>
        await compute.deleteRegistrationSecret(harness.newIdentity(), namespace),
    ],
    [
      'a claim is deleted',
      async (compute, namespace) =>
        await compute.deleteClaims(harness.newIdentity(), [CLAIM], namespace),
    ],
    [
      'a claim is read',
      async (compute, namespace) =>
        await compute.claimWriters(harness.newIdentity(), [CLAIM], namespace),
    ],
    [
      'a claim is annotated',
      async (compute, namespace) =>
        await compute.fenceClaims(
          harness.newIdentity(),
          [CLAIM],
          { podUid: 'u', node: 'n' },
          namespace,
        ),
    ],
  ])(
    'in a namespace that the worker does not serve, not even %s is deleted',
    async (_what, ask) => {
      const compute = harness.instance({
        otherNamespaces: ['ci-web'],
      });
      await expect(ask(compute, 'kube-system')).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('HOLDFAST_NAMESPACES'),
      });
    },
  );
});

describe('folders of the machine', () => {
  let folder: string;
  let compute: Compute;
  const identity: RunnerIdentity = { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 };
  const victim = (): string => join(folder, 'victim');

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-folders-'));
    await mkdir(victim());
    await writeFile(join(victim(), 'output.log'), 'secret');
    await writeFile(
      join(victim(), 'spec.json'),
      JSON.stringify({ name: 'x', uid: 'u', workflowId: 'runner-a' }),
    );
    compute = createProcessCompute({ stateDir: join(folder, 'state'), command: ['true'] });
    await compute.list();
  });
  afterAll(async () => await rm(folder, { recursive: true }));

  const NAMES = ['/../../../victim', '../../victim', '..', '.', 'a/b', ''];
  test.each(NAMES)(
    'no claim of the name "%s" leads out of the folder of the claims',
    async (name) => {
      for (const claim of [
        { ...CLAIM, name },
        { ...CLAIM, claim: name },
      ]) {
        const request = { identity, labels: {}, terminationGracePeriodSeconds: 1 };
        await expect(
          compute.createPod({ ...request, volumeClaims: [claim] }, undefined),
        ).rejects.toMatchObject({ kind: 'invalid' });
      }
      // One that has a name of its own is left alone in any case.
      await expect(compute.deleteClaims(identity, [{ ...CLAIM, name }])).rejects.toMatchObject({
        kind: 'invalid',
      });
      expect(existsSync(join(victim(), 'output.log'))).toBe(true);
    },
  );

  test.each(NAMES)('no pod of the name "%s" leads out of the folder of the pods', async (name) => {
    const pod = { name, uid: 'u', workflowId: 'runner-a' };
    for (const asked of [
      compute.getPod(pod),
      compute.deletePod(pod, { gracePeriodSeconds: 0 }),
      compute.tailLog(pod, 100),
      compute.streamLog(pod, { signal: AbortSignal.timeout(10_000) }),
    ])
      await expect(asked).rejects.toMatchObject({ kind: 'invalid' });
    expect(existsSync(join(victim(), 'output.log'))).toBe(true);
  });
});
