import type { VolumeClaim } from '../../core/contract/index.ts';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { V1Node } from '@kubernetes/client-node';
import {
  HARNESS_POLICY,
  startKubernetesHarness,
  type KubernetesHarness,
} from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';
import type { PodRequest, PodView, SupervisorConfig } from '../../core/domain/pod.ts';

const SUPERVISION: SupervisorConfig = {
  runnerKind: 'command',
  ephemeral: true,
  onTerm: 'checkpoint',
  drainTimeoutMs: 0,
  signalTimeoutMs: 10_000,
  cleanupTimeoutMs: 5_000,
  signalTarget: 'group',
  startupTimeoutMs: 600_000,
};

await describeWithLab(
  'kubernetes compute: claims, stops and nodes',
  { kubernetes: true },
  (lab) => {
    let harness: KubernetesHarness;

    beforeEach(async () => {
      harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
    });
    afterEach(() => harness.close());

    const request = (more: Partial<PodRequest> = {}): PodRequest => ({
      ...harness.request(harness.newIdentity()),
      ...more,
    });
    const claims = async (): Promise<string[]> =>
      (
        await harness.core.listNamespacedPersistentVolumeClaim({ namespace: harness.namespace })
      ).items
        .map(({ metadata }) => metadata?.name ?? '')
        .toSorted();

    test("a runner's own claim serves all its attempts and is deleted on request; a named claim remains", async () => {
      const { compute } = harness;
      const volumeClaims: VolumeClaim[] = [
        { name: 'state', mountPath: '/state', storage: '1Gi', storageClass: 'nobody' },
        {
          name: 'cache',
          mountPath: '/cache',
          claim: 'shared-cache',
          storage: '5Gi',
          accessModes: ['ReadWriteMany'],
        },
      ];
      const first = request({ volumeClaims });
      await compute.createPod(first, undefined);
      const made = await claims();
      expect(made).toEqual([expect.stringMatching(/-state$/), 'shared-cache']);
      await compute.createPod({ ...first, identity: { ...first.identity, attempt: 2 } }, undefined);
      await harness.second.createPod(request({ volumeClaims: [volumeClaims[1]!] }), undefined);
      expect(await claims()).toEqual(made);
      const pods = (await harness.core.listNamespacedPod({ namespace: harness.namespace })).items;
      expect(
        pods.map(({ spec }) =>
          spec?.volumes
            ?.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [])
            .toSorted(),
        ),
      ).toEqual(expect.arrayContaining([made, made, ['shared-cache']]));
      await compute.deleteClaims(first.identity, volumeClaims);
      await compute.deleteClaims(first.identity, volumeClaims);
      // A claim that a pod uses is protected: it goes with the last of them.
      for (const { metadata } of pods)
        await harness.vanish({
          name: metadata?.name ?? '',
          uid: metadata?.uid ?? '',
          workflowId: '',
          scheduled: false,
          createdAt: '',
          ended: false,
          deleted: false,
          terminating: false,
        });
      await expect(claims()).resolves.toContain('shared-cache');
    });

    test('data source, volumes and annotations of a claim are those that the API server accepts', async () => {
      const asked = {
        dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' },
        selector: {
          matchLabels: { disk: 'nvme' },
          matchExpressions: [{ key: 'zone', operator: 'In' as const, values: ['a'] }],
        },
        annotations: { 'example.com/backup': 'off' },
      };
      const volumeClaims: VolumeClaim[] = [
        { name: 'work', mountPath: '/work', storage: '1Gi', ...asked },
        { name: 'cache', mountPath: '/cache', claim: 'shared-cache', storage: '1Gi', ...asked },
      ];
      const compute = harness.instance({ policy: { ...HARNESS_POLICY, claims: ['*'] } });
      await compute.createPod(request({ volumeClaims }), undefined);
      // One that outlives its runner carries no runner's name, whatever else it is annotated with: the next runner may take it.
      await compute.createPod(request({ volumeClaims: [volumeClaims[1]!] }), undefined);
      const made = (
        await harness.core.listNamespacedPersistentVolumeClaim({ namespace: harness.namespace })
      ).items;
      expect(made).toHaveLength(2);
      for (const { metadata, spec } of made)
        expect({ spec, annotations: metadata?.annotations }).toMatchObject({
          spec: { dataSource: asked.dataSource, selector: asked.selector },
          annotations: asked.annotations,
        });
    });

    test('a claim of another workflow is not used', async () => {
      const ask = request({
        volumeClaims: [{ name: 'state', mountPath: '/state', storage: '1Gi' }],
      });
      const other = { ...ask.identity, firstRunId: 'another' };
      const claim = (await import('../../activities/compute/naming.ts')).claimName(
        ask.identity,
        'state',
      );
      await harness.core.createNamespacedPersistentVolumeClaim({
        namespace: harness.namespace,
        body: {
          metadata: { name: claim, annotations: { 'holdfast.dev/workflow-id': other.workflowId } },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        },
      });
      await expect(harness.compute.createPod(ask, undefined)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('belongs to another owner'),
      });
    });

    test('pods that may still write to a claim are recorded on it, for every workflow that uses it', async () => {
      const { compute, second } = harness;
      const volumeClaims: VolumeClaim[] = [
        {
          name: 'cache',
          mountPath: '/cache',
          claim: 'shared',
          storage: '5Gi',
          accessModes: ['ReadWriteMany'],
        },
      ];
      const [one, other] = [request({ volumeClaims }), request({ volumeClaims })];
      const writers = [
        { podUid: 'aaaaaaaa-0000-4000-8000-000000000000', node: 'node-a' },
        { podUid: 'bbbbbbbb-0000-4000-8000-000000000000', node: 'node-b' },
      ] as const;
      // Nobody has made it yet: nothing to note, and nobody to wait for.
      await compute.fenceClaims(one.identity, volumeClaims, writers[0]);
      expect(await second.claimWriters(other.identity, volumeClaims)).toEqual([]);
      await compute.createPod(one, undefined);
      for (const writer of writers) await compute.fenceClaims(one.identity, volumeClaims, writer);
      expect(await second.claimWriters(other.identity, volumeClaims)).toEqual(writers);
      await second.releaseClaims(other.identity, volumeClaims, writers[0]);
      expect(await compute.claimWriters(one.identity, volumeClaims)).toEqual([writers[1]]);
    });

    test('the supervisor of the pod with this UID gets the reason before its pod is stopped', async () => {
      const compute = harness.instance({
        podDefaults: { image: 'busybox', command: ['work'], supervisor: { image: 'supervisor:1' } },
      });
      const pod = await compute.createPod(request({ supervision: SUPERVISION }), undefined);
      await harness.makeRunning(pod);
      const reason = async (): Promise<string | undefined> =>
        (await harness.core.readNamespacedPod({ name: pod.name, namespace: harness.namespace }))
          .metadata?.annotations?.['holdfast.dev/stop-reason'];
      expect(
        await compute.deletePod(
          { ...pod, uid: '00000000-0000-0000-0000-000000000000' },
          { stopReason: 'superseded' },
        ),
      ).toBe('deleted');
      expect(await reason()).toBeUndefined();
      expect(await compute.deletePod(pod, { stopReason: 'drained' })).toBe('terminating');
      expect(await reason()).toBe('drained');
      await harness.vanish(pod);
      expect(await compute.deletePod(pod, { stopReason: 'cancelled' })).toBe('deleted');
    });

    test('a stop order: the pod is deleted after its runner has obeyed it, or after a timeout', async () => {
      const compute = harness.instance({
        podDefaults: { image: 'busybox', command: ['work'], supervisor: { image: 'supervisor:1' } },
      });
      const [obeys, deaf] = await Promise.all(
        [1, 2].map(
          async () => await compute.createPod(request({ supervision: SUPERVISION }), undefined),
        ),
      );
      const life = async ({ name }: PodView): Promise<[string | undefined, boolean]> => {
        const { metadata } = await harness.core.readNamespacedPod({
          name,
          namespace: harness.namespace,
        });
        return [
          metadata?.annotations?.['holdfast.dev/stop-reason'],
          metadata?.deletionTimestamp !== undefined,
        ];
      };
      for (const pod of [obeys!, deaf!]) await harness.makeRunning(pod);
      const startMs = performance.now();
      const deletions = [
        compute.deletePod(obeys!, { stopReason: 'cancelled' }),
        compute.deletePod(deaf!, { stopReason: 'timeout' }),
      ];
      await until(
        'both to be told',
        async () =>
          JSON.stringify(await Promise.all([obeys!, deaf!].map(life))) ===
          '[["cancelled",false],["timeout",false]]',
      );
      await harness.end(obeys!, 143);
      expect(await deletions[0]).toBe('deleted');
      expect(await life(deaf!)).toEqual(['timeout', false]);
      expect(await deletions[1]).toBe('terminating');
      expect(performance.now() - startMs).toBeGreaterThan(14_000);
      // Told while it is terminating already, it would not hear of it.
      const againMs = performance.now();
      expect(await compute.deletePod(deaf!, { stopReason: 'cancelled' })).toBe('terminating');
      expect(performance.now() - againMs).toBeLessThan(14_000);
    });

    test('the API server stores the pod unchanged, with its probes and mounts', async () => {
      const compute = harness.instance({
        podDefaults: { image: 'busybox', command: ['work'], supervisor: { image: 'supervisor:1' } },
      });
      const ask = request({
        supervision: SUPERVISION,
        volumeClaims: [{ name: 'state', mountPath: '/state', claim: 'state-1' }],
        env: { NODE_OPTIONS: '--no-warnings', PLAIN: '1' },
      });
      const { name } = await compute.createPod(ask, undefined);
      const { spec, metadata } = await harness.core.readNamespacedPod({
        name,
        namespace: harness.namespace,
      });
      const [runner] = spec!.containers;
      expect(runner!.command!.slice(-3)).toEqual(['/holdfast/supervisor.mjs', '--', 'work']);
      const env = Object.fromEntries(
        runner!.env!.map(({ name: variable, value }) => [variable, value]),
      );
      expect(env).toMatchObject({
        HOLDFAST_RUNNER_KIND: 'command',
        HOLDFAST_ON_TERM: 'checkpoint',
        HOLDFAST_ATTEMPT: '1',
        HOLDFAST_STATE_DIR: '/state',
        HOLDFAST_CHILD_ENV_NODE_OPTIONS: '--no-warnings',
        PLAIN: '1',
      });
      expect(env).not.toHaveProperty('NODE_OPTIONS');
      expect(runner).toMatchObject({
        startupProbe: {
          httpGet: { path: '/startup?wait=900ms' },
          periodSeconds: 1,
          failureThreshold: 780,
        },
        readinessProbe: {
          httpGet: { path: '/ready?wait=900ms' },
          periodSeconds: 1,
          failureThreshold: 1,
        },
      });
      expect(
        runner!
          .volumeMounts!.map(({ mountPath }) => mountPath)
          .filter((path) => !path.includes('serviceaccount'))
          .toSorted(),
      ).toEqual(['/etc/holdfast', '/holdfast', '/state']);
      expect(spec!.initContainers).toMatchObject([
        { name: 'holdfast-supervisor', image: 'supervisor:1' },
      ]);
      expect(metadata).toMatchObject({
        labels: { 'holdfast.dev/workflow': ask.identity.workflowId },
        annotations: { 'holdfast.dev/probes': 'command' },
      });
    });

    test.each<[string, NonNullable<V1Node['spec']>, string | undefined, string]>([
      ['Ready', {}, 'True', 'ready'],
      ['that does not answer', {}, 'Unknown', 'unreachable'],
      ['that never said anything', {}, undefined, 'unreachable'],
      [
        'taken out of service',
        {
          taints: [
            {
              key: 'node.kubernetes.io/out-of-service',
              value: 'nodeshutdown',
              effect: 'NoExecute',
            },
          ],
        },
        'Unknown',
        'fenced',
      ],
    ])('a node %s', async (_what, spec, ready, expected) => {
      const name = `${harness.namespace}-node`;
      await harness.core.createNode({ body: { metadata: { name }, spec } });
      try {
        if (ready !== undefined) {
          const body = [
            {
              op: 'add',
              path: '/status/conditions',
              value: [
                {
                  type: 'Ready',
                  status: ready,
                  reason: 'Test',
                  message: '',
                  lastHeartbeatTime: new Date(),
                  lastTransitionTime: new Date(),
                },
              ],
            },
          ];
          await harness.core.patchNodeStatus({ name, body });
        }
        expect(await harness.compute.nodeState(name)).toBe(expected);
      } finally {
        await harness.core.deleteNode({ name });
      }
      expect(await harness.compute.nodeState(name)).toBe('deleted');
    });

    test('a pod that never ran, or does not exist, has no log', async () => {
      const pod = await harness.compute.createPod(request(), undefined);
      expect(await harness.compute.tailLog(pod, 1_000)).toBeUndefined();
      await harness.vanish(pod);
      expect(await harness.compute.tailLog(pod, 1_000)).toBeUndefined();
    });
  },
);
