/** The rules of the sweep on real components: what is never touched, and when nothing is. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { Client, Connection } from '@temporalio/client';
import {
  HOLD_ANNOTATION,
  SWEEP_MARK_ANNOTATION,
} from '../../activities/compute/kubernetes/metadata.ts';
import type { SweepInput, SweepReport } from '../../core/contract/index.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { temporalNamespaceId } from '../../activities/shared/temporalNamespace.ts';
import { startApiProxy, type ApiProxy } from '../support/apiProxy.ts';
import { describeWithLab } from '../support/lab.ts';
import { SweepWorld } from '../support/sweepWorld.ts';
import { until } from '../support/until.ts';

const REFUSED = {
  kind: 'answer',
  status: 403,
  body: JSON.stringify({
    kind: 'Status',
    status: 'Failure',
    reason: 'Forbidden',
    code: 403,
    message: 'secrets is forbidden: User "x" cannot list resource "secrets"',
  }),
} as const;
const BROKEN = {
  kind: 'answer',
  status: 500,
  body: JSON.stringify({
    kind: 'Status',
    status: 'Failure',
    reason: 'InternalError',
    code: 500,
    message: 'etcd is unwell',
  }),
} as const;

await describeWithLab('sweep', { temporal: true, kubernetes: true }, (lab) => {
  let world: SweepWorld;
  beforeEach(async () => {
    world = await SweepWorld.open(lab);
  });
  afterEach(async () => await world.close());

  const annotations = async (name: string): Promise<Record<string, string>> =>
    (await world.core.readNamespacedPod({ namespace: world.harness.namespace, name })).metadata
      ?.annotations ?? {};
  const isUntouched = async ({ name, uid }: PodView): Promise<boolean> => {
    const { metadata } = await world.core.readNamespacedPod({
      namespace: world.harness.namespace,
      name,
    });
    return (
      metadata?.uid === uid &&
      metadata.deletionTimestamp === undefined &&
      metadata.annotations?.[SWEEP_MARK_ANNOTATION] === undefined
    );
  };
  /** Sweeps three times, so that what would be repaired at any time is. */
  const sweeps = async (input: SweepInput = {}): Promise<SweepReport> => {
    for (const _ of [1, 2]) await world.sweep(input);
    return await world.sweep(input);
  };

  describe('an incomplete list prevents all changes', () => {
    let pod: PodView;
    let proxy: ApiProxy | undefined;
    beforeEach(async () => {
      ({ pod } = await world.provision(await world.terminated()));
    });
    afterEach(async () => await proxy?.close());

    const throughProxy = async (): Promise<{
      proxy: ApiProxy;
      compute: SweepWorld['harness']['compute'];
    }> => {
      proxy = await startApiProxy(world.harness.kubeConfig);
      const compute = world.harness.instance({ kubeConfig: proxy.kubeConfig });
      await compute.location();
      return { proxy, compute };
    };
    const expectNothingTouched = async (report: SweepReport, list: string): Promise<void> => {
      expect(report).toMatchObject({
        findings: [],
        incompleteLists: expect.arrayContaining([{ list, reason: expect.stringMatching(/./) }]),
      });
      expect(await isUntouched(pod)).toBe(true);
    };

    test('Temporal is unreachable', async () => {
      const client = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
      await expectNothingTouched(await world.sweep({}, { client }), 'workflows');
      await client.connection.close();
    });

    test('the API server does not respond', async () => {
      const { compute } = await throughProxy();
      proxy!.down = true;
      await expectNothingTouched(await world.sweep({}, { compute }), 'pods');
    });

    test('the API server does not identify the cluster', async () => {
      proxy = await startApiProxy(world.harness.kubeConfig);
      proxy.down = true;
      await expectNothingTouched(
        await world.sweep(
          {},
          { compute: world.harness.instance({ kubeConfig: proxy.kubeConfig }) },
        ),
        'pods',
      );
    });

    test('the list of pods is truncated', async () => {
      const { compute } = await throughProxy();
      proxy!.script('list', BROKEN);
      await expectNothingTouched(await world.sweep({}, { compute }), 'pods');
    });

    test('Secrets cannot be listed', async () => {
      const { compute } = await throughProxy();
      proxy!.script('other', REFUSED);
      await expectNothingTouched(await world.sweep({}, { compute }), 'secrets');
    });

    test('a worker continues without Secrets, and reports what it has not read', async () => {
      const { compute } = await throughProxy();
      proxy!.script('other', REFUSED);
      const report = await world.sweep({}, { compute, resources: 'where permitted' });
      expect(report).toMatchObject({
        incompleteLists: [],
        skippedLists: [{ list: 'secrets' }],
        findings: [{ kind: 'orphaned_pod', status: 'marked' }],
      });
      expect(report.examined).not.toHaveProperty('secrets');
    });

    test('the CI server does not list a scope', async () => {
      world.simulator.addFault({ kind: 'status', status: 502 });
      await expectNothingTouched(
        await world.sweep(),
        `registrations of organization ${world.scope.name}`,
      );
    });
  });

  test("a credential that lost a scope: only that scope's registrations are left out and handed off", async () => {
    const life = await world.terminated();
    const { pod } = await world.provision(life);
    world.simulator.setAccess('sweep', { scopes: [] });
    const [first, second] = [await world.sweep(), await world.sweep()];
    expect(first).toMatchObject({
      incompleteLists: [],
      skippedLists: [{ list: `registrations of organization ${world.scope.name}` }],
      findings: [{ kind: 'orphaned_pod', name: pod.name, status: 'marked' }],
    });
    expect(second.findings).toMatchObject([
      {
        kind: 'orphaned_pod',
        status: 'repaired',
        note: expect.stringContaining(`deregistration-${life.runnerName}`),
      },
    ]);
  });

  test('objects of another Temporal namespace are not changed, even with --force, until they are taken over', async () => {
    await world.named();
    const takeOver = randomUUID();
    const identity = { ...world.harness.newIdentity(), temporalNamespaceId: takeOver };
    const pod = await world.run({ identity });
    expect(await sweeps({ force: true })).toMatchObject({
      findings: [],
      skipped: { other_temporal: 1 },
      otherTemporal: [{ namespaceId: takeOver, objects: 1 }],
    });
    expect(await isUntouched(pod)).toBe(true);
    const [first, second] = [await world.sweep({ takeOver }), await world.sweep({ takeOver })];
    expect(first).toMatchObject({
      findings: [{ kind: 'orphaned_pod', name: pod.name, status: 'marked' }],
      otherTemporal: [],
    });
    expect(second).toMatchObject({ findings: [{ name: pod.name, status: 'repaired' }] });
  });

  test('registrations of this location have no owner while another Temporal has runners here', async () => {
    await world.named();
    await world.register(`ghost-${randomUUID().slice(0, 4)}-0123456789`);
    const identity = { ...world.harness.newIdentity(), temporalNamespaceId: randomUUID() };
    const pod = await world.run({ identity });
    expect(await sweeps({ scopes: [{ organization: world.scope.name }] })).toMatchObject({
      findings: [],
      skipped: { other_temporal: 1, foreign: 1 },
    });
    await world.core.deleteNamespacedPod({
      name: pod.name,
      namespace: world.harness.namespace,
      gracePeriodSeconds: 0,
    });
    expect(await world.sweep({ scopes: [{ organization: world.scope.name }] })).toMatchObject({
      findings: [{ kind: 'orphaned_registration', status: 'marked' }],
    });
  });

  test('objects without an owner are not changed', async () => {
    await world.named();
    const pod = await world.run({ identity: world.harness.newIdentity() });
    expect(await sweeps({ force: true })).toMatchObject({ findings: [], skipped: { foreign: 1 } });
    expect(await isUntouched(pod)).toBe(true);
  });

  test('an inaccessible scope that only workflows name does not prevent a sweep', async () => {
    await world.terminated();
    await world.startRunner({ phase: 'Provisioning' });
    world.simulator.setAccess('sweep', { scopes: [] });
    expect(await world.sweep()).toMatchObject({
      incompleteLists: [],
      skipped: { scope_not_visible: 1, in_transition: 1 },
    });
  });

  test('more than half of ten pods: it stops, unless forced', async () => {
    const lives = await Promise.all([1, 2, 3, 4, 5, 6].map(async () => await world.terminated()));
    const running = await Promise.all([1, 2, 3, 4].map(async () => await world.startRunner()));
    const pods = await Promise.all(
      [...lives, ...running].map(async (life) => await world.run(life)),
    );
    const report = await world.sweep();
    expect(report).toMatchObject({
      aborted: expect.stringContaining('6 of 10 pods'),
      counts: { orphaned_pod: { found: 6, marked: 0 } },
    });
    expect(await Promise.all(pods.map(isUntouched))).not.toContain(false);
    expect(await world.sweep({ force: true })).toMatchObject({
      counts: { orphaned_pod: { found: 6, marked: 6 } },
    });
  });

  test('pods of a location without runners in Temporal: it stops, unless forced', async () => {
    const identity = {
      ...world.harness.newIdentity(),
      temporalNamespaceId: await temporalNamespaceId(world.client),
    };
    const pod = await world.run({ identity });
    expect(await sweeps()).toMatchObject({
      aborted: expect.stringContaining('Temporal knows no runner of this installation'),
    });
    expect(await isUntouched(pod)).toBe(true);
    expect(await world.sweep({ force: true })).toMatchObject({
      findings: [
        {
          kind: 'orphaned_pod',
          reason: expect.stringContaining('not known to Temporal'),
          status: 'marked',
        },
      ],
    });
  });

  test('an unreachable worker is no reason to change its running runners', async () => {
    const life = await world.startRunner({ phase: 'Busy' });
    const { pod } = await world.provision(life);
    expect(await sweeps()).toMatchObject({ findings: [], skipped: { no_worker: 1 }, marks: [] });
    expect(await isUntouched(pod)).toBe(true);
    expect((await life.handle.describe()).status.name).toBe('RUNNING');
    expect(world.simulator.runner(life.runnerName)).toBeDefined();
  });

  test('a workflow that will get another pod is not changed', async () => {
    const [fresh, resumes] = [
      await world.startRunner({ phase: 'Provisioning' }),
      await world.startRunner({ phase: 'Busy', input: { onEviction: 'resume' } }),
    ];
    expect(await sweeps()).toMatchObject({
      findings: [],
      skipped: { in_transition: 1, will_resume: 1 },
    });
    for (const { handle } of [fresh, resumes])
      expect((await handle.describe()).status.name).toBe('RUNNING');
  });

  test('objects that are too young, dry runs, and objects on hold', async () => {
    const { pod } = await world.provision(await world.terminated());
    expect(await sweeps({ minAge: '10m' })).toMatchObject({
      findings: [],
      skipped: { too_young: 2 },
    });
    expect(await sweeps({ dryRun: true })).toMatchObject({
      dryRun: true,
      findings: [{ kind: 'orphaned_pod', status: 'found' }],
    });
    expect(await isUntouched(pod)).toBe(true);
    const { namespace } = world.harness;
    await world.core.patchNamespacedPod(
      {
        name: pod.name,
        namespace,
        body: { metadata: { annotations: { [HOLD_ANNOTATION]: 'a look at it first' } } },
      },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    expect(await sweeps()).toMatchObject({ findings: [], skipped: { on_hold: 1 } });
    expect(await isUntouched(pod)).toBe(true);
  });

  describe('a worker whose clock is an hour ahead', () => {
    const { now } = Date;
    const goWrong = (): void =>
      void jest.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
    afterEach(() => void jest.restoreAllMocks());

    test('does not treat young objects as old', async () => {
      const { pod } = await world.provision(await world.terminated());
      goWrong();
      expect(await sweeps({ minAge: '10m' })).toMatchObject({
        findings: [],
        skipped: { too_young: 2 },
      });
      expect(await isUntouched(pod)).toBe(true);
    });

    test('does not apply a mark too early, and keeps one that is valid for others', async () => {
      const life = await world.terminated();
      await world.register(life.runnerName);
      await world.sweep({ listMaxAge: '10m' });
      goWrong();
      const kind = 'orphaned_registration';
      expect(await world.sweep({ listMaxAge: '10m' })).toMatchObject({
        findings: [{ kind, status: 'waits' }],
      });
      world.marks = [];
      await world.sweep();
      jest.restoreAllMocks();
      expect(await world.sweep({ listMaxAge: '10m' })).toMatchObject({
        findings: [{ kind, status: 'waits' }],
      });
      await until('the mark to count', async () => {
        const { findings } = await world.sweep({ listMaxAge: '2s' });
        return findings[0]?.status === 'repaired';
      });
    });
  });

  test('objects of another installation, or of none', async () => {
    const life = await world.terminated();
    const other = world.harness.instance({ installation: 'other' });
    const pod = await world.run(life, undefined, {}, other);
    await world.register('somebodys-runner', ['self-hosted']);
    await world.register(`other-${'0'.repeat(10)}`, ['self-hosted', `holdfast-${'0'.repeat(10)}`]);
    await world.register(`unlabelled-${'1'.repeat(10)}`, ['self-hosted']);
    expect(await sweeps()).toMatchObject({
      findings: [],
      examined: { pods: 0, registrations: 3 },
      skipped: { foreign: 3 },
    });
    expect(await isUntouched(pod)).toBe(true);
    expect(world.simulator.runners()).toHaveLength(3);
  });

  test('a forged owner: the name of a runner contains the hash of its own workflow', async () => {
    const life = await world.terminated();
    const { searchAttributes } = await life.handle.describe();
    const [madeUp = ''] = searchAttributes['RunnerName'] as string[];
    await world.register(madeUp, ['self-hosted']);
    expect(await sweeps()).toMatchObject({ findings: [], skipped: { foreign: 1 } });
    expect(world.simulator.runner(madeUp)).toBeDefined();
  });

  test("a claim of a set's slot outlives its runner", async () => {
    const life = await world.terminated();
    const { pod } = await world.provision(life, {
      volumeClaims: [{ name: 'cache', mountPath: '/cache', claim: 'cache-0', storage: '1Gi' }],
    });
    await world.harness.vanish(pod);
    await sweeps();
    expect(await world.names()).toEqual({ pods: [], secrets: [], claims: ['cache-0'] });
    expect(await world.sweep()).toMatchObject({ skipped: { shared_claim: 1 } });
  });

  test('a pod during its eviction', async () => {
    const { pod } = await world.provision(await world.terminated());
    await world.harness.patchStatus(pod, {
      conditions: [
        {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'EvictionByEvictionAPI',
          lastTransitionTime: new Date(),
        },
      ],
    });
    expect(await sweeps()).toMatchObject({ findings: [], skipped: { in_transition: 1 } });
    expect(await isUntouched(pod)).toBe(true);
  });

  test('a registration that a workflow is removing belongs to that workflow, if it has a worker', async () => {
    const { runnerName } = await world.terminated();
    await world.register(runnerName);
    const taskQueue = await world.polledQueue();
    await world.client.workflow.start('deregistration', {
      workflowId: `deregistration-${runnerName}`,
      taskQueue,
      args: [{}],
    });
    expect(await world.sweep()).toMatchObject({ findings: [], skipped: { handed_off: 1 } });
  });

  test('the registration of an earlier runner is removed while its workflow runs, that of the current one stays', async () => {
    const life = await world.startRunner({ attempt: 3, taskQueue: await world.polledQueue() });
    const { searchAttributes } = await life.handle.describe();
    const [runnerName = ''] = searchAttributes['RunnerName'] as string[];
    const [first = ''] = runnerName.split('-r3');
    for (const name of [first, `${first}-r2`, runnerName]) await world.register(name);
    const removal = (name: string) =>
      expect.objectContaining({ kind: 'orphaned_registration', name, status: 'repaired' });
    await world.sweep();
    expect(await world.sweep()).toMatchObject({
      findings: expect.arrayContaining([removal(first), removal(`${first}-r2`)]),
    });
    expect(world.simulator.runners().map(({ name }) => name)).toEqual([runnerName]);
  });

  test('a mark is valid for its pod: another pod with the same name is marked first', async () => {
    const life = await world.terminated();
    const { pod } = await world.provision(life);
    await world.sweep();
    await world.harness.vanish(pod);
    const another = await world.run(life);
    expect(another.name).toBe(pod.name);
    expect(await world.sweep()).toMatchObject({
      findings: expect.arrayContaining([
        expect.objectContaining({ kind: 'orphaned_pod', status: 'marked' }),
      ]),
      counts: { orphaned_pod: { repaired: 0 } },
    });
    expect(await world.object('pod', another.name)).toMatchObject({ terminating: false });
  });

  test('an outdated mark is removed', async () => {
    const life = await world.startRunner();
    const { pod } = await world.provision(life);
    const { namespace } = world.harness;
    await world.core.patchNamespacedPod(
      {
        name: pod.name,
        namespace,
        body: {
          metadata: {
            annotations: { [SWEEP_MARK_ANNOTATION]: '2026-01-01T00:00:00Z orphaned_pod: x' },
          },
        },
      },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    await world.sweep();
    expect(await annotations(pod.name)).not.toHaveProperty([SWEEP_MARK_ANNOTATION]);
  });

  test('one failed repair does not prevent others', async () => {
    const lives = [await world.terminated(), await world.terminated()];
    for (const life of lives) await world.run(life);
    const proxy = await startApiProxy(world.harness.kubeConfig);
    try {
      const compute = world.harness.instance({ kubeConfig: proxy.kubeConfig });
      await world.sweep({}, { compute });
      proxy.script('deletion', BROKEN);
      expect(await world.sweep({}, { compute })).toMatchObject({
        counts: { orphaned_pod: { found: 2, repaired: 1, failed: 1 } },
        findings: [
          { status: 'failed', note: expect.stringContaining('etcd is unwell') },
          { status: 'repaired' },
        ],
      });
      expect(await world.sweep({}, { compute })).toMatchObject({
        counts: { orphaned_pod: { found: 1, repaired: 1 } },
        skipped: { in_transition: 1 },
      });
    } finally {
      await proxy.close();
    }
  });

  test('marks are stored in the cluster for sweeps without a worker', async () => {
    expect(await world.owned.loadMarks()).toEqual([]);
    const marks = [
      {
        kind: 'stuck_runner',
        key: `w ${randomUUID()}`,
        since: '2026-01-01T00:00:00.000Z',
        unpolledSince: '2026-01-01T00:00:00.000Z',
      } as const,
    ];
    await world.owned.saveMarks([
      ...marks,
      {
        kind: 'orphaned_registration',
        key: 'organization acme#7',
        since: '2026-01-01T00:00:00.000Z',
      },
    ]);
    expect(await world.owned.loadMarks()).toHaveLength(2);
    await world.owned.saveMarks(marks);
    expect(await world.harness.instance().ownedObjects?.loadMarks()).toEqual(marks);
  });
});
