/** RunnerSet resources on a real API server, and the sets that a worker makes of them on the real Temporal server. */
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  ApiextensionsV1Api,
  CustomObjectsApi,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';
import { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { ResourceApi } from '../../worker/controller/resourceApi.ts';
import { RunnerSetController } from '../../worker/controller/runnerSetController.ts';
import { RUNNER_SETS, type RunnerSetResource } from '../../worker/controller/runnerSetResource.ts';
import { SetWorkflows } from '../../worker/controller/setWorkflows.ts';
import { objectsOf } from '../support/chart.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { createTestNamespace, type TestNamespace } from '../support/pods.ts';
import { SHORT_SET_INTERVALS, SetRun } from '../support/setRun.ts';
import { StrictApi } from '../support/strictApi.ts';
import { until } from '../support/until.ts';

const { group, version, plural } = RUNNER_SETS;
const DEFINITION = new URL('../../deploy/chart/crds/runnersets.holdfast.dev.yaml', import.meta.url);

await describeWithLab('RunnerSet resources', { temporal: true, kubernetes: true }, (lab) => {
  let all: MemoryWorld;
  let namespace: TestNamespace;
  let objects: CustomObjectsApi;
  let server: ApiServer;
  let controllers: RunnerSetController[] = [];
  let warnings: unknown[] = [];
  let name: string;
  let count = 0;

  beforeAll(async () => {
    namespace = await createTestNamespace(lab.kubernetes?.kubeconfig ?? '', 'resources');
    objects = namespace.kubeConfig.makeApiClient(CustomObjectsApi);
    server = new ApiServer(namespace.kubeConfig);
    const [definition] = objectsOf(readFileSync(DEFINITION, 'utf8'));
    expect(
      (await new StrictApi(namespace.kubeConfig).refusal(definition!, { dryRun: false })) ??
        'already exists',
    ).toContain('already exists');
    const extensions = namespace.kubeConfig.makeApiClient(ApiextensionsV1Api);
    await until('the definition to be served', async () =>
      (
        (await extensions.readCustomResourceDefinition({ name: `${plural}.${group}` })).status
          ?.conditions ?? []
      ).some(({ type, status }) => type === 'Established' && status === 'True'),
    );
    all = await memoryWorld(lab);
  }, 120_000);
  afterAll(async () => {
    await all.world.close();
    await server.close();
    await namespace.remove();
  });
  beforeEach(() => {
    name = `res-${process.pid}-${++count}`;
    warnings = [];
  });
  afterEach(async () => {
    await Promise.all(controllers.map(async (each) => await each.stop()));
    controllers = [];
  });

  function control(): RunnerSetController {
    const sets = new SetWorkflows({
      client: () => all.world.client,
      taskQueue: all.world.taskQueue,
    });
    const logger = {
      info: () => undefined,
      warn: (fields: unknown) => warnings.push((fields as { err?: unknown }).err ?? fields),
    } as never;
    const controller = new RunnerSetController({
      api: new ResourceApi(server, namespace.name),
      sets,
      namespace: namespace.name,
      cluster: async () => 'this-cluster',
      taskQueue: all.world.taskQueue,
      logger,
      resyncMs: 1_000,
      requeueMs: 100,
    });
    controllers.push(controller);
    return controller;
  }
  const at = (): {
    group: string;
    version: string;
    plural: string;
    namespace: string;
    name: string;
  } => ({ group, version, plural, namespace: namespace.name, name });
  const spec = (more: object = { replicas: 2 }): Omit<RunnerSetInput, 'name'> => ({
    ...more,
    template: SetRun.template(),
    intervals: SHORT_SET_INTERVALS,
  });
  const create = async (body: object = spec()): Promise<RunnerSetResource> =>
    (await objects.createNamespacedCustomObject({
      ...at(),
      body: {
        apiVersion: `${group}/${version}`,
        kind: 'RunnerSet',
        metadata: { name },
        spec: body,
      },
    })) as RunnerSetResource;
  const read = async (): Promise<RunnerSetResource> =>
    (await objects.getNamespacedCustomObject(at())) as RunnerSetResource;
  const change = async (body: object): Promise<unknown> =>
    await objects.patchNamespacedCustomObject(
      { ...at(), body: { spec: body } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
  const remove = async (): Promise<unknown> => await objects.deleteNamespacedCustomObject(at());
  const set = (): SetRun => SetRun.of({ world: all.world, compute: all.compute, ci: all.ci }, name);
  async function says(reason: string): Promise<string> {
    let message = '';
    await until(
      `the resource to say ${reason}`,
      async () => {
        const { metadata, status } = await read();
        const ready = status?.conditions?.find(({ type }) => type === 'Ready');
        message = `${ready?.reason}: ${ready?.message}`;
        return ready?.reason === reason && status?.observedGeneration === metadata.generation;
      },
      () => `${message} ${JSON.stringify(warnings.map(String))}`,
    );
    return message;
  }
  async function ends(): Promise<void> {
    const timer = setInterval(() => set().bringUp(), 20);
    await set()
      .handle.result()
      .finally(() => clearInterval(timer));
  }

  test('a set starts, its numbers are shown, kubectl scales it, and it drains when the resource is deleted', async () => {
    control();
    await create();
    await says('Applied');
    await set().comesTo({ idle: 2 });
    await until('the numbers', async () => (await read()).status?.idle === 2);
    expect((await read()).status).toMatchObject({
      desired: 2,
      replicas: 2,
      busy: 0,
      selector: `holdfast.dev/set=${name}`,
      conditions: [{ status: 'True' }],
    });

    await objects.patchNamespacedCustomObjectScale(
      { ...at(), body: { spec: { replicas: 3 } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    await set().comesTo({ idle: 3 });
    await until(
      'the scale to tell',
      async () =>
        (
          (await objects.getNamespacedCustomObjectScale(at())) as {
            status: { replicas: number; selector?: string };
          }
        ).status.replicas === 3,
    );
    await remove();
    await ends();
    expect(all.compute.pods.size).toBe(0);
    expect(warnings).toEqual([]);
  });

  test('the spec overrides a command, except a pause that the spec does not mention', async () => {
    control();
    await create();
    await says('Applied');
    await set().command({ command: 'pause', reason: 'sale' });
    await set().command({ command: 'scale', replicas: 7 });
    await set().reaches(
      'its size of before, paused',
      ({ replicas, blockedReason }) => replicas === 2 && blockedReason !== undefined,
    );
    await until(
      'the pause to be shown',
      async () => (await read()).status?.blockedReason?.includes('sale') === true,
    );
    await remove();
    await ends();
  });

  describe('an invalid spec is rejected', () => {
    test('by the API server, if the definition can express the rule', async () => {
      await expect(create(spec({ replicas: 2, max: 3 }))).rejects.toThrow(
        /replicas and max with minIdle exclude each other/,
      );
      await expect(create(spec({}))).rejects.toThrow(/give replicas for a fixed number of runners/);
      await create(spec({ max: 3 }));
      await expect(
        objects.patchNamespacedCustomObjectScale(
          { ...at(), body: { spec: { replicas: 3 } } },
          setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
        ),
      ).rejects.toThrow(/cannot be scaled/);
      await remove();
    });

    test('otherwise by the status, and the set stays unchanged until the spec is valid', async () => {
      control();
      await create();
      await says('Applied');
      await change({ scaleDownDelay: 'soon', replicas: 4 });
      expect(await says('InvalidSpec')).toContain('spec.scaleDownDelay');
      expect(await set().status()).toMatchObject({ replicas: 2 });
      await change({ scaleDownDelay: '1m' });
      await says('Applied');
      expect(await set().status()).toMatchObject({ replicas: 4 });
      await change({ template: { credential: 'unknown' } });
      expect(await says('Refused')).toContain('credential');
      expect(await set().status()).toMatchObject({ replicas: 4 });
      await remove();
      await ends();
    });

    test('by the failure of the set that was started', async () => {
      control();
      await create({ ...spec(), template: { ...SetRun.template(), credential: 'unknown' } });
      expect(await says('Failed')).toContain('credential');
      await change({ template: { credential: null } });
      await says('Applied');
      await remove();
      await ends();
    });
  });

  test('the set of a resource that was deleted without a worker drains later, and another one of its name waits for that', async () => {
    const first = control();
    await create();
    await says('Applied');
    await set().comesTo({ idle: 2 });
    const [runner] = (await set().status()).runners;
    set().startJob(runner!);
    await first.stop();
    await remove();
    await create(spec({ replicas: 1 }));
    control();
    await says('PreviousSetDraining');
    set().endJob(runner!);
    await says('Applied');
    expect(await set().status()).toMatchObject({ replicas: 1 });
    await remove();
    await ends();
  });

  test('a set without a resource is not changed; one that was deleted externally stays deleted until the spec changes', async () => {
    const own = await SetRun.start(
      { world: all.world, compute: all.compute, ci: all.ci },
      { name, replicas: 1 },
    );
    control();
    await create();
    expect(await says('NameTaken')).toContain('holdfast set delete');
    expect(await own.status()).toMatchObject({ replicas: 1 });
    await own.end();
    await says('Applied');
    await set().end();
    await says('Ended');
    await change({ replicas: 3 });
    await says('Applied');
    await remove();
    await ends();
  });

  test('two workers create one set, and one rollout of a change', async () => {
    control();
    control();
    await create();
    await says('Applied');
    await set().comesTo({ idle: 2 });
    await change({ replicas: 4 });
    await says('Applied');
    await set().comesTo({ idle: 4 });
    await remove();
    await ends();
    expect(
      all.compute.created.filter(({ identity }) => identity.workflowId.includes(name)),
    ).toHaveLength(4);
  });
});
