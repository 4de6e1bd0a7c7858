/** Whoever may start a workflow wants what another job's steps have left, or to leave something in its place. */
import { randomUUID } from 'node:crypto';
import type { V1Container, V1PersistentVolumeClaim, V1Pod } from '@kubernetes/client-node';
import { WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ArtifactStoreLocation } from '../../activities/compute/kubernetes/storeAccess.ts';
import { createCiServers } from '../../activities/ciServers/index.ts';
import type { KubernetesCompute } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import type { ProvisionInput } from '../../core/activities/index.ts';
import { clusterTaskQueue, JOB_WORKFLOW, type StepStorage } from '../../core/contract/index.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import {
  HARNESS_POLICY,
  startKubernetesHarness,
  type KubernetesHarness,
} from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { startUntrustedWorker, type UntrustedWorker } from '../support/untrustedWorker.ts';
import { until } from '../support/until.ts';

const CLAIM: ArtifactStoreLocation = { claim: 'artifacts' };
const BUCKET: ArtifactStoreLocation = {
  bucket: 'artifacts',
  region: 'us-east-1',
  pathStyle: false,
  secret: 'bucket-key',
};

/** Of a run of another's job, whose id everybody may read in Temporal. */
const VICTIM = `repositories/acme/web/unit/${randomUUID()}`;
const storageIn = (path: string, more: Partial<StepStorage> = {}): StepStorage => ({
  path,
  sharedDirSources: [],
  timeout: '1m',
  ...more,
});

await describeWithLab(
  'users who can start workflows',
  { temporal: true, kubernetes: true },
  (lab) => {
    describe.each<[what: string, place: ArtifactStoreLocation | undefined]>([
      ['a claim', CLAIM],
      ['a bucket', BUCKET],
      ['a claim of each job', undefined],
    ])('with the outputs of steps in %s', (_what, place) => {
      let harness: KubernetesHarness;
      let compute: KubernetesCompute;
      let world: HoldfastWorld;
      let untrusted: UntrustedWorker;

      beforeAll(async () => {
        const address = lab.temporal?.address ?? '';
        harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
        compute = harness.instance({
          policy: HARNESS_POLICY,
          podDefaults: {
            image: 'img',
            supervisor: { image: 'sup:1' },
            ...(place === undefined
              ? { jobClaim: { size: '1Mi', storageClass: 'nobody' } }
              : { store: { image: 'sup:1', place } }),
            template: { spec: { schedulerName: 'contract' } },
          },
        });
        world = await holdfastWorld(address, { compute, ciServers: createCiServers({}) });
        untrusted = await startUntrustedWorker(address, world.client);
      }, 120_000);
      afterAll(async () => {
        await untrusted.close();
        await world.close();
        await harness.close();
      });

      const pods = async (): Promise<V1Pod[]> =>
        (await harness.core.listNamespacedPod({ namespace: harness.namespace })).items;
      const claims = async (): Promise<V1PersistentVolumeClaim[]> =>
        (await harness.core.listNamespacedPersistentVolumeClaim({ namespace: harness.namespace }))
          .items;

      test('get no runner in the folder of another job, whatever job its input names', async () => {
        for (const storage of [
          storageIn(`${VICTIM}/test-unit`),
          storageIn(`${VICTIM}/test-mine`, {
            sharedDirSources: [`shared/${VICTIM}/test-unit/1.json`],
          }),
        ]) {
          const run = await world.start({
            ciServer: 'none',
            command: ['cat'],
            job: 'job-unit',
            storage,
          });
          expect(await run.result()).toMatchObject({
            outcome: 'errored',
            message: expect.stringMatching(
              /is for the steps of the job's run \S+ alone, and no job has started this runner/,
            ),
          });
        }
        expect(await pods()).toEqual([]);
      });

      test('get none by a workflow of their own', async () => {
        const location = await compute.location();
        const request =
          (path: string) =>
          (workflowId: string): ProvisionInput & { location: typeof location } => ({
            location,
            runnerName: 'runner-x',
            pod: {
              ...harness.request({ ...harness.newIdentity(), workflowId }),
              command: ['cat'],
              storage: {
                path,
                sharedDirSources: [],
                timeoutMs: 1_000,
                job: { workflowId: 'job-victim', firstRunId: randomUUID(), attempt: 0 },
              },
            },
            credentialsRetryMs: 1_000,
            completeWithinMs: 1_000,
          });
        const queue = clusterTaskQueue(world.taskQueue);
        expect(await untrusted.call('provision', queue, request(`${VICTIM}/test-unit`))).toContain(
          'no job has started this runner',
        );
        expect(await untrusted.call('provision', queue, request(VICTIM))).toContain(
          "is not the folder of a job's step",
        );
        expect(await pods()).toEqual([]);
        expect(await claims()).toEqual([]);
      });

      test("cannot use the store in a container with the name of one of Holdfast's", async () => {
        const reach =
          place === CLAIM
            ? { volumeMounts: [{ name: 'holdfast-store', mountPath: '/s' }] }
            : {
                env: [
                  {
                    name: 'KEY',
                    valueFrom: { secretKeyRef: { name: 'bucket-key', key: 'AWS_ACCESS_KEY_ID' } },
                  },
                ],
              };
        const template = {
          spec: {
            containers: [{ name: 'holdfast-uploader', image: 'mine', ...reach }],
            volumes:
              place === CLAIM
                ? [{ name: 'holdfast-store', persistentVolumeClaim: { claimName: 'artifacts' } }]
                : [],
          },
        };
        const location = await compute.location();
        const input = (workflowId: string): ProvisionInput & { location: object } => ({
          location,
          runnerName: 'runner-x',
          pod: {
            ...harness.request({ ...harness.newIdentity(), workflowId }),
            command: ['cat'],
            template,
          },
          credentialsRetryMs: 1_000,
          completeWithinMs: 1_000,
        });
        expect(
          await untrusted.call('provision', clusterTaskQueue(world.taskQueue), input),
        ).toContain("has the name holdfast-uploader, which is Holdfast's own");
        expect(await pods()).toEqual([]);
      });

      test('get a folder of its own for a job with the same ID, also after a reset', async () => {
        const workflowId = `job-${randomUUID().slice(0, 8)}`;
        const handle = await world.client.workflow.start(JOB_WORKFLOW, {
          workflowId,
          taskQueue: world.taskQueue,
          args: [
            {
              name: 'unit',
              repository: 'acme/web',
              test: [{ name: 'unit', image: 'img', commands: 'cat' }],
            },
          ],
        });
        const own = `repositories/acme/web/unit/${handle.firstExecutionRunId}`;
        await until('its pod', async () => (await pods()).length === 1);
        const ownFolders = async (): Promise<unknown[]> => {
          if (place === CLAIM)
            return [`artifacts/${own}/test-unit/1`, `shared/${own}`, `shared/${own}/test-unit`];
          if (place === BUCKET) return [`artifacts/${own}/test-unit/1/`];
          return (await claims()).map(({ metadata }) => metadata?.name);
        };
        expect(reachOf((await pods())[0], place)).toEqual(await ownFolders());
        const made = (await claims()).map(({ metadata, spec }) => [
          metadata?.annotations?.['holdfast.dev/workflow-id'],
          metadata?.annotations?.['holdfast.dev/first-run-id'],
          spec?.accessModes?.join(),
          spec?.resources?.requests?.['storage'],
          spec?.storageClassName,
        ]);
        expect(made).toEqual(
          place === undefined
            ? [[workflowId, handle.firstExecutionRunId, 'ReadWriteOnce', '1Mi', 'nobody']]
            : [],
        );

        await world.client.workflow.getHandle(`${workflowId}-test-1`).terminate('to be begun anew');
        await handle.result();
        const [first] = await pods();
        // Nothing runs here that would end the pod, and while it is there its claim is protected.
        if (place === undefined) await vanish(harness, first);
        await until('its claim to be gone', async () => (await claims()).length === 0);
        await reset(handle);
        await until('its second pod', async () =>
          (await pods()).some(({ metadata }) => metadata?.uid !== first?.metadata?.uid),
        );
        const second = (await pods()).find(
          ({ metadata }) => metadata?.uid !== first?.metadata?.uid,
        );
        expect(reachOf(second, place)).toEqual(reachOf(first, place));
        await stopAll(world, [workflowId, `${workflowId}-test-1`]);
      });
    });
  },
);

async function vanish({ core, namespace }: KubernetesHarness, pod?: V1Pod): Promise<void> {
  const name = pod?.metadata?.name ?? '';
  await core.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 });
}

/** The parts of the store that a pod of a step gets at, with a bucket where its uploader writes, or the claim of its job. */
function reachOf(pod: V1Pod | undefined, place: ArtifactStoreLocation | undefined): string[] {
  if (place === undefined)
    return (pod?.spec?.volumes ?? []).flatMap(
      ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [],
    );
  const containers: V1Container[] = [
    ...(pod?.spec?.initContainers ?? []),
    ...(pod?.spec?.containers ?? []),
  ];
  if (!('claim' in place))
    return containers.flatMap(({ env = [] }) =>
      env.flatMap(({ name, value = '' }) => (name === 'HOLDFAST_UPLOAD_TO' ? [value] : [])),
    );
  return containers
    .flatMap(({ volumeMounts = [] }) =>
      volumeMounts.flatMap(({ name, subPath = 'all of it' }) =>
        name === 'holdfast-store' ? [subPath] : [],
      ),
    )
    .toSorted();
}

/** As somebody does who has mended what the job needs: it goes on from its first task, as another run. */
async function reset({ client, workflowId }: WorkflowHandle): Promise<void> {
  const execution = { workflowId };
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace: client.options.namespace,
    execution,
  });
  const finished = history?.events?.find(
    ({ workflowTaskCompletedEventAttributes: attributes }) => attributes,
  );
  await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: execution,
    reason: 'a test',
    workflowTaskFinishEventId: finished?.eventId ?? null,
    requestId: randomUUID(),
  });
}

async function stopAll({ client }: HoldfastWorld, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await client.workflow
      .getHandle(id)
      .terminate('the test is over')
      .catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      });
  }
}
