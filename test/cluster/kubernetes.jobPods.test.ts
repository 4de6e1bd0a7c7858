/** What jobs have of their own beside runners' pods is given an owner, and counted. The garbage collector's part is in test/node/sidecars.test.ts. */
import { PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { JobPodCount } from '../../activities/compute/kubernetes/jobPodOwnership.ts';
import type { KubernetesComputeOptions } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import { HOLD_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { startApiProxy } from '../support/apiProxy.ts';
import { applyManifest } from '../support/clusterAccounts.ts';
import {
  MAKES_JOB_PODS,
  readJobObjects,
  makeJobObjects,
  ownersOf,
  type JobObjects,
  type Owners,
} from '../support/jobObjects.ts';
import { startKubernetesHarness, type KubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { recordWatch, type RecordedWatch } from '../support/recordedWatch.ts';
import { actAsShippedWorker } from '../support/shippedRole.ts';
import { until, untilSeen } from '../support/until.ts';

const PATCH_JOBS = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: patch-jobs, namespace: NAMESPACE }
rules: [{ apiGroups: [batch], resources: [jobs], verbs: [patch] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: patch-jobs, namespace: NAMESPACE }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: patch-jobs }
subjects: [{ kind: ServiceAccount, name: holdfast-worker, namespace: NAMESPACE }]
`;

await describeWithLab('kubernetes: job pods', { kubernetes: true }, (lab) => {
  let harness: KubernetesHarness;
  const watches: RecordedWatch[] = [];
  const counts: JobPodCount[] = [];
  beforeEach(async () => {
    harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
  });
  afterEach(async () => {
    await Promise.all(watches.splice(0).map(async (watch) => await watch.stop()));
    counts.splice(0);
    await harness.close();
  });

  async function watch(options: Partial<KubernetesComputeOptions> = {}): Promise<void> {
    const recorded = await recordWatch(
      harness.instance({
        jobPodNamespaces: [harness.namespace],
        onJobPodCount: (count) => counts.push(count),
        ...options,
      }),
    );
    watches.push(recorded);
    await until('the watch is synced', () => recorded.synced());
  }
  async function runner(env: readonly object[] = [MAKES_JOB_PODS]): Promise<PodView> {
    const request = harness.request(harness.newIdentity());
    return await harness.instance({ jobPodNamespaces: [harness.namespace] }).createPod(
      {
        ...request,
        template: {
          spec: { ...request.template?.spec, containers: [{ name: 'runner', env: [...env] }] },
        },
      },
      undefined,
    );
  }
  const make = async (of: string): Promise<JobObjects> =>
    await makeJobObjects(harness, of, { scheduler: 'contract' });
  const look = async (objects: JobObjects): Promise<Owners> =>
    ownersOf(await readJobObjects(harness, objects));
  const owned = ({ name, uid }: PodView): Owners => {
    const owner = [{ apiVersion: 'v1', kind: 'Pod', name, uid }];
    return { job: owner, step: owner, registry: owner, environment: owner };
  };
  async function expectOwned(objects: JobObjects, pod: PodView): Promise<void> {
    await untilSeen(
      'all to have an owner',
      async () => Object.values(await look(objects)),
      (owners) => owners.length === 4 && owners.every((each) => each !== undefined),
    );
    expect(await look(objects)).toEqual(owned(pod));
  }

  test("a pod, a Job and their Secrets get the runner's pod as owner, and are counted until they are deleted", async () => {
    await watch();
    const pod = await runner();
    const objects = await make(pod.name);
    await expectOwned(objects, pod);
    await until('both to be counted', () => counts.at(-1)?.owned === 2);
    await harness.core.deleteNamespacedPod({
      namespace: harness.namespace,
      name: objects.job.name!,
      body: { gracePeriodSeconds: 0 },
    });
    await until('one to be counted', () => counts.at(-1)?.owned === 1);
    expect(counts.filter(({ unowned }) => unowned > 0)).toEqual([]);
  });

  test('objects created without a watch get their owner after its restart, even if the runner has ended', async () => {
    const pod = await runner();
    const objects = await make(pod.name);
    await watch();
    await expectOwned(objects, pod);

    const late = await runner();
    await until('it to be seen', () => watches[0]!.of(late).length > 0);
    await harness.vanish(late);
    await until('it to be seen gone', () =>
      watches[0]!.of(late).some((event) => event.pod.deleted),
    );
    // The garbage collector of this cluster takes them at once.
    const orphans = await make(late.name);
    await untilSeen(
      'nothing to be left',
      async () => Object.keys(await readJobObjects(harness, orphans)),
      (left) => left.length === 0,
    );
  });

  test('objects without a runner of this installation are not changed, nor Secrets that a job only references', async () => {
    await watch();
    const pod = await runner();
    const strangers = await make('somebody-runner-abcde');
    const other = await harness.core.createNamespacedSecret({
      namespace: harness.namespace,
      body: { metadata: { name: 'theirs', labels: { 'runner-pod': 'another' } } },
    });
    const named = await harness.core.createNamespacedPod({
      namespace: harness.namespace,
      body: {
        metadata: { name: 'names-it', labels: { 'runner-pod': pod.name } },
        spec: {
          schedulerName: 'contract',
          imagePullSecrets: [{ name: 'theirs' }],
          containers: [
            { name: 'job', image: 'busybox', envFrom: [{ secretRef: { name: 'absent' } }] },
          ],
        },
      },
    });
    const objects = await make(pod.name);
    await expectOwned(objects, pod);
    await untilSeen(
      'the pod to have its owner',
      async () =>
        (await harness.core.readNamespacedPod({ namespace: harness.namespace, name: 'names-it' }))
          .metadata,
      (metadata) =>
        metadata?.uid === named.metadata?.uid && metadata?.ownerReferences?.length === 1,
    );
    expect(
      (await harness.core.readNamespacedSecret({ namespace: harness.namespace, name: 'theirs' }))
        .metadata,
    ).toMatchObject({ resourceVersion: other.metadata?.resourceVersion });
    expect(await look(strangers)).toEqual({
      job: undefined,
      step: undefined,
      registry: undefined,
      environment: undefined,
    });
    await until('ours to be counted, and theirs not', () => counts.at(-1)?.owned === 3);
  });

  test('without the permission they are counted as unowned, and fixed when it is granted', async () => {
    await watch({
      kubeConfig: await actAsShippedWorker(harness, {
        jobPods: true,
        without: { verb: 'patch', resource: 'jobs' },
      }),
      watchTimeoutMs: 2_000,
    });
    const pod = await runner();
    const objects = await make(pod.name);
    await until(
      'one to be unowned',
      () => counts.at(-1)?.unowned === 1 && counts.at(-1)?.owned === 1,
    );
    expect(harness.log).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: 'job pods: one could not be given its runner for an owner; trying again',
      }),
    );
    await applyManifest(harness.kubeConfig, PATCH_JOBS.replaceAll('NAMESPACE', harness.namespace));
    await expectOwned(objects, pod);
    await until(
      'both to be counted',
      () => counts.at(-1)?.owned === 2 && counts.at(-1)?.unowned === 0,
    );
  });

  test('objects on hold get an owner after the hold only', async () => {
    const pod = await runner();
    const objects = await make(pod.name);
    const hold = async (value: string | null): Promise<unknown> =>
      await harness.core.patchNamespacedPod(
        {
          namespace: harness.namespace,
          name: objects.job.name!,
          body: { metadata: { annotations: { [HOLD_ANNOTATION]: value } } },
        },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
      );
    await hold('looking into it');
    await watch({ watchTimeoutMs: 2_000 });
    await until(
      'the Job to be owned, and the pod not',
      () => counts.at(-1)?.owned === 1 && counts.at(-1)?.unowned === 1,
    );
    expect((await look(objects)).job).toBeUndefined();
    await hold(null);
    await expectOwned(objects, pod);
  });

  test('such a runner is rejected by other computes, and a static one by this one, before anything is created', async () => {
    const request = harness.request(harness.newIdentity());
    const withHooks = {
      ...request,
      template: {
        spec: {
          ...request.template?.spec,
          containers: [{ name: 'runner', env: [MAKES_JOB_PODS] }],
        },
      },
    };
    const here = harness.instance({ jobPodNamespaces: [harness.namespace] });
    const scope = { kind: 'organization', name: 'acme' } as const;
    const at = (mode: 'jit' | 'token') => ({ scope, credential: 'default', mode });
    expect(harness.compute.validate(withHooks, at('jit'))).toEqual([
      expect.stringContaining('HOLDFAST_JOB_POD_NAMESPACES'),
    ]);
    expect(harness.compute.validate(request, at('token'))).toEqual([]);
    expect(here.validate(withHooks, at('jit'))).toEqual([]);
    expect(here.validate(request, at('token'))).toEqual([
      expect.stringMatching(/^ephemeral: must be true/),
    ]);
    await expect(
      here.createPod(request, { runnerName: 'r', env: { RUNNER_TOKEN: 'AAAA' } }),
    ).rejects.toMatchObject({ kind: 'invalid', message: expect.stringMatching(/^ephemeral: /) });
    expect(await here.list()).toEqual([]);
  });

  test('runners without job pods cause no watch', async () => {
    const proxy = await startApiProxy(harness.kubeConfig);
    try {
      await runner([]);
      await watch({ kubeConfig: proxy.kubeConfig });
      expect(
        proxy.seen.map(({ kind }) => kind).filter((kind) => kind === 'list' || kind === 'watch'),
      ).toEqual(['list', 'watch']);
      expect(counts).toEqual([]);
    } finally {
      await Promise.all(watches.splice(0).map(async (each) => await each.stop()));
      await proxy.close();
    }
  });
});
