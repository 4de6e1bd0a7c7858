import { KubernetesObjectApi } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { KubernetesCompute } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { startApiProxy, type ApiProxy } from '../support/apiProxy.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { holdfastWorld, type HoldfastWorld, type RunnerRun } from '../support/holdfastWorld.ts';
import { startKubernetesHarness, type KubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

/** Template of the harness's pods. No scheduler assigns them to a node. */
const POD: Partial<RunnerInput> = {
  pod: { spec: { schedulerName: 'contract' } },
  supervisor: 'none',
};

/** Teardown of a runner on a real API server that denies requests or completes them late. */
await describeWithLab(
  'teardown in a restricted cluster',
  { temporal: true, kubernetes: true },
  (lab) => {
    let harness: KubernetesHarness;
    let proxy: ApiProxy;
    let ci: FakeCiServer;
    let world: HoldfastWorld;
    let run: RunnerRun;

    beforeEach(async () => {
      harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
      proxy = await startApiProxy(harness.kubeConfig);
      ci = new FakeCiServer();
      world = await holdfastWorld(lab.temporal!.address, {
        compute: computeBehind(proxy),
        ciServers: ci,
      });
    });
    afterEach(async () => {
      await world.close();
      await proxy.close();
      await harness.close();
    });

    function computeBehind({ kubeConfig }: ApiProxy): KubernetesCompute {
      return harness.instance({ kubeConfig, timeoutMs: 5_000 });
    }

    async function running(input: Partial<RunnerInput> = {}): Promise<PodView> {
      run = await world.start({ ...POD, ...input });
      const name = await run.pod();
      const pod = (await harness.second.getPod({ name }))!;
      await harness.makeRunning(pod);
      ci.connect((await run.status()).runnerName ?? '');
      await run.reaches('Idle', ({ phase }) => phase === 'Idle');
      return pod;
    }

    async function expectNothingLeft(): Promise<void> {
      const { core, namespace } = harness;
      const left = {
        pods: (await core.listNamespacedPod({ namespace })).items.length,
        secrets: (await core.listNamespacedSecret({ namespace })).items.length,
        registrations: ci.registrations.size,
      };
      expect(left).toEqual({ pods: 0, secrets: 0, registrations: 0 });
    }

    /**
     * Denies the deletion of every pod in the harness's namespace by an admission policy.
     * @returns a function that removes the policy
     */
    async function denyDeletions(): Promise<() => Promise<void>> {
      const { namespace, core } = harness;
      const objects = harness.kubeConfig.makeApiClient(KubernetesObjectApi);
      const apiVersion = 'admissionregistration.k8s.io/v1';
      const matchConstraints = {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['DELETE'], resources: ['pods'] },
        ],
      };
      const validations = [{ expression: 'false', message: 'not on Sundays' }];
      const policy = {
        apiVersion,
        kind: 'ValidatingAdmissionPolicy',
        metadata: { name: namespace },
        spec: { failurePolicy: 'Fail', matchConstraints, validations },
      };
      const binding = {
        apiVersion,
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata: { name: namespace },
        spec: { policyName: namespace, validationActions: ['Deny'] },
      };
      await objects.create(policy);
      await objects.create(binding);
      const body = {
        metadata: { name: 'probe' },
        spec: { schedulerName: 'contract', containers: [{ name: 'a', image: 'b' }] },
      };
      await core.createNamespacedPod({ namespace, body });
      const isDenied = async (): Promise<boolean> => {
        const error: unknown = await core
          .deleteNamespacedPod({ name: 'probe', namespace, dryRun: 'All' })
          .then(
            () => undefined,
            (reason: unknown) => reason,
          );
        return error !== undefined;
      };
      await until('the policy to be in effect', isDenied);
      return async () => {
        await objects.delete(binding);
        await objects.delete(policy);
        await until('the policy to be deleted', async () => !(await isDenied()));
        await core.deleteNamespacedPod({ name: 'probe', namespace, gracePeriodSeconds: 0 });
      };
    }

    test('a policy that denies the deletion causes a wait with the reason; without it the runner ends and no object remains', async () => {
      const pod = await running();
      const allow = await denyDeletions();
      await harness.end(pod, 1);
      const { phase } = await run.reaches(
        'a wait with the reason of the denial',
        ({ waitingFor }) => waitingFor?.includes('not on Sundays') === true,
      );
      expect(phase).toBe('TearingDown');
      const { pendingActivities } = (await run.handle.describe()).raw;
      expect(pendingActivities?.map(({ activityType }) => activityType?.name)).toContain(
        'tearDown',
      );
      await allow();
      expect(await run.result()).toMatchObject({ outcome: 'failed' });
      await expectNothingLeft();
    }, 150_000);

    test.each([
      [
        'a missing permission',
        403,
        {
          message:
            'pods "x" is forbidden: User "worker" cannot delete resource "pods" in API group ""',
          reason: 'Forbidden',
        },
      ],
      [
        'too many requests',
        429,
        {
          message: 'the server has received too many requests',
          reason: 'TooManyRequests',
          details: { retryAfterSeconds: 1 },
        },
      ],
    ])(
      '%s delays the teardown, and does not prevent it',
      async (_what, status, details) => {
        const pod = await running();
        const rejection = {
          kind: 'answer' as const,
          status,
          body: JSON.stringify({
            kind: 'Status',
            apiVersion: 'v1',
            status: 'Failure',
            code: status,
            ...details,
          }),
        };
        proxy.script('deletion', rejection, rejection);
        await harness.end(pod, 1);
        expect(await run.result()).toMatchObject({ outcome: 'failed' });
        await expectNothingLeft();
      },
      150_000,
    );

    test.each(['pods', 'secrets'])(
      'a creation (%s) that arrives after the cancellation is cleaned up',
      async (kind) => {
        const held = proxy.hold(
          ({ method, url }) => method === 'POST' && url.pathname.endsWith(`/${kind}`),
        );
        run = await world.start({ ...POD, intervals: { lateCreationWindow: '20s' } });
        const late = await held;
        await run.handle.signal('cancel', 'not needed any more');
        await run.reaches(
          'the wait for objects that may be created late',
          ({ waitingFor }) =>
            waitingFor === 'objects that the interrupted provisioning may still create',
        );
        await expect(late.arrive()).resolves.toBe(201);
        expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
        await expectNothingLeft();
      },
      150_000,
    );

    test.each([
      ['a registered runner', { ephemeral: true }],
      ['a runner that registers itself', { ephemeral: false }],
    ])(
      '%s whose container starts during the deletion of its pod is not deleted',
      async (_what, input) => {
        run = await world.start({ ...POD, ...input, intervals: { listMaxAge: '1s' } });
        const name = await run.pod();
        const pod = (await harness.second.getPod({ name }))!;
        const held = proxy.hold(({ method, url }) => {
          const isDeletion = method === 'DELETE' && url.pathname.endsWith(`/pods/${name}`);
          // Drop all other requests until the held one has arrived.
          proxy.down ||= isDeletion;
          return isDeletion;
        });
        await run.handle.executeUpdate('drain', { args: [{ reason: 'not needed any more' }] });
        const deletion = await held;
        await harness.makeRunning(pod);
        expect(await deletion.arrive()).toBe(409);
        proxy.down = false;
        await run.reaches('a wait for a runner that has started', ({ waitingFor }) =>
          /the runner ends by itself|runner may be about to register/.test(waitingFor ?? ''),
        );
        expect(await harness.second.getPod(pod)).toMatchObject({
          uid: pod.uid,
          ended: false,
          terminating: false,
        });
        await harness.end(pod, 0);
        expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
        await expectNothingLeft();
      },
      150_000,
    );

    test('a claim is not mounted by another runner while the node of the previous one is unreachable', async () => {
      const volumeClaims = [
        { name: 'cache', mountPath: '/cache', claim: 'slot-0', storage: '1Gi' },
      ];
      const { name, uid } = await running({ volumeClaims });
      const node = (await harness.second.getPod({ name }))?.node ?? '';
      const ready = async (status: string): Promise<void> => {
        const body = [
          {
            op: 'add',
            path: '/status/conditions',
            value: [
              {
                type: 'Ready',
                status,
                reason: 'Test',
                message: '',
                lastHeartbeatTime: new Date(),
                lastTransitionTime: new Date(),
              },
            ],
          },
        ];
        await harness.core.patchNodeStatus({ name: node, body });
      };
      await ready('Unknown');
      ci.setBusy((await run.status()).runnerName ?? '', true);
      await harness.vanish((await harness.second.getPod({ name }))!);
      await until(
        'the end of the workflow of the lost runner',
        async () => (await run.handle.describe()).status.name === 'COMPLETED',
      );
      const next = await world.start({ ...POD, volumeClaims });
      await next.reaches(
        'a wait for the node',
        ({ waitingFor }) => waitingFor?.includes(node) === true && waitingFor.includes(uid),
      );
      expect(
        (await harness.core.listNamespacedPod({ namespace: harness.namespace })).items,
      ).toEqual([]);
      await ready('True');
      await next.pod();
      const [claim] = (
        await harness.core.listNamespacedPersistentVolumeClaim({ namespace: harness.namespace })
      ).items;
      expect(
        Object.keys(claim?.metadata?.annotations ?? {}).filter((key) => key.includes('writer')),
      ).toEqual([]);
      await next.handle.signal('cancel');
      expect(await next.result()).toMatchObject({ outcome: 'aborted' });
    }, 90_000);
  },
);
