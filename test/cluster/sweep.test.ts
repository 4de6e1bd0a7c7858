/** Each row of the sweep's table on real components: made by hand, found, marked, and repaired in the next sweep. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SWEEP_MARK_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import {
  DEREGISTRATION_WORKFLOW,
  ORPHANED_POD_MESSAGE,
  UNRESPONSIVE_RUNNER_MESSAGE,
  STUCK_RUNNER_MESSAGE,
  replaceIdleSignal,
  podStateSignal,
  type SweepInput,
  type SweepReport,
} from '../../core/contract/index.ts';
import type { SupervisorConfig } from '../../core/domain/pod.ts';
import { signalsOf } from '../support/demandSets.ts';
import { HARNESS_POLICY } from '../support/kubernetesHarness.ts';
import { readJobObjects, makeJobObjects, type JobObjects } from '../support/jobObjects.ts';
import { describeWithLab } from '../support/lab.ts';
import { SweepWorld } from '../support/sweepWorld.ts';
import { until, untilSeen } from '../support/until.ts';
import { WireRunner } from '../support/wireRunner.ts';

await describeWithLab('sweep', { temporal: true, kubernetes: true }, (lab) => {
  let world: SweepWorld;
  beforeEach(async () => {
    world = await SweepWorld.open(lab);
  });
  afterEach(async () => await world.close());

  const handedOn = async (name: string): Promise<{ type: string; input: unknown }> => {
    const { events } = await world.client.workflow
      .getHandle(`deregistration-${name}`)
      .fetchHistory();
    const started = events?.[0]?.workflowExecutionStartedEventAttributes;
    return {
      type: started?.workflowType?.name ?? '',
      input: JSON.parse(Buffer.from(started?.input?.payloads?.[0]?.data ?? []).toString()),
    };
  };

  test('orphaned_pod: marked, then unregistered and stopped with its grace period, as reported', async () => {
    const life = await world.terminated('because I could');
    const { pod, registration } = await world.provision(life);

    const first = await world.sweep();
    expect(first).toMatchObject({
      incompleteLists: [],
      counts: { orphaned_pod: { found: 1, marked: 1, repaired: 0, failed: 0 } },
      findings: [
        {
          kind: 'orphaned_pod',
          name: pod.name,
          location: world.harness.namespace,
          status: 'marked',
          workflowId: life.identity.workflowId,
        },
      ],
    });
    const marked = await world.object('pod', pod.name);
    expect(marked).toMatchObject({
      mark: expect.stringMatching(
        /^\d{4}-.*Z orphaned_pod: .*was terminated by .*: because I could/,
      ),
      pod: { terminating: false },
    });
    expect(world.simulator.runner(life.runnerName)).toBeDefined();

    const second = await world.sweep();
    expect(second).toMatchObject({
      counts: { orphaned_pod: { found: 1, marked: 0, repaired: 1, failed: 0 } },
      findings: [
        { status: 'repaired', note: expect.stringContaining(`deregistration-${life.runnerName}`) },
      ],
    });
    const { metadata } = await world.core.readNamespacedPod({
      namespace: world.harness.namespace,
      name: pod.name,
    });
    expect(metadata).toMatchObject({
      uid: pod.uid,
      deletionGracePeriodSeconds: 20,
      annotations: { [SWEEP_MARK_ANNOTATION]: expect.stringContaining(ORPHANED_POD_MESSAGE) },
    });
    expect(world.log).toEqual([
      {
        message: ORPHANED_POD_MESSAGE,
        fields: expect.objectContaining({
          pod: pod.name,
          workflowId: life.identity.workflowId,
          registration: 'removed',
        }),
      },
    ]);
    expect(world.simulator.runner(life.runnerName)).toBeUndefined();
    expect(await handedOn(life.runnerName)).toEqual({
      type: DEREGISTRATION_WORKFLOW,
      input: {
        organization: world.scope.name,
        credential: 'default',
        runner: { name: life.runnerName, id: registration.runnerId },
        reason: ORPHANED_POD_MESSAGE,
      },
    });

    // On its way: nothing more is done to it.
    expect(await world.sweep()).toMatchObject({ findings: [], skipped: { in_transition: 1 } });
    await world.harness.finishTermination(pod);
    expect(await world.sweep()).toMatchObject({ findings: [], skipped: {} });
    expect(await world.names()).toEqual({ pods: [], secrets: [], claims: [] });
  });

  test('orphaned_pod with a busy runner: stopped despite the 422, and its registration is handed off', async () => {
    const life = await world.terminated();
    const { pod, registration } = await world.provision(life);
    const { runner } = await WireRunner.start(world.simulator.url, registration);
    const job = world.simulator.queueJob({ repo: `${world.scope.name}/app` });
    await world.simulator.waitForJob(job.id, 'in_progress');
    await world.sweep();
    expect(await world.sweep()).toMatchObject({
      findings: [
        {
          status: 'repaired',
          note: expect.stringMatching(
            /could not be removed yet \(.*is (still|currently) running a job.*deregistration-/s,
          ),
        },
      ],
    });
    expect(await world.object('pod', pod.name)).toMatchObject({ terminating: true });
    expect(await handedOn(life.runnerName)).toMatchObject({
      input: { reason: ORPHANED_POD_MESSAGE },
    });
    // Its runner is still online, its pod still there; and then, somebody is at it.
    expect(await world.sweep()).toMatchObject({
      findings: [],
      skipped: { in_transition: 1, in_use: 1 },
    });
    runner.stop();
  });

  test('orphaned_pod that has ended: deleted', async () => {
    const life = await world.terminated();
    const { pod } = await world.provision(life);
    await world.harness.end(pod, 0);
    expect(await world.sweep()).toMatchObject({
      findings: [{ kind: 'orphaned_pod', status: 'marked' }],
      skipped: { in_use: 2 },
    });
    expect(await world.sweep()).toMatchObject({
      findings: [{ kind: 'orphaned_pod', status: 'repaired' }],
    });
    await world.harness.finishTermination(pod);
    expect(await world.names()).toMatchObject({ pods: [], secrets: [] });
    expect(world.simulator.runners()).toEqual([]);
  });

  test('orphaned_registration: marked in the report, then removed', async () => {
    const { runnerName } = await world.terminated();
    const { runnerId } = await world.register(runnerName);
    const report = await world.sweep();
    expect(report).toMatchObject({
      findings: [
        {
          kind: 'orphaned_registration',
          name: runnerName,
          location: `organization ${world.scope.name}`,
          status: 'marked',
        },
      ],
      marks: [
        { kind: 'orphaned_registration', key: `organization ${world.scope.name}#${runnerId}` },
      ],
    });
    expect(await world.sweep({ listMaxAge: '1m' })).toMatchObject({
      findings: [{ status: 'waits' }],
      marks: report.marks,
    });
    expect(world.simulator.runner(runnerName)).toBeDefined();
    expect(await world.sweep()).toMatchObject({
      counts: { orphaned_registration: { repaired: 1 } },
      marks: [],
    });
    expect(world.simulator.runners()).toEqual([]);
  });

  test('orphaned_registration without a label: found by the record of a workflow with its name', async () => {
    const { runnerName } = await world.named();
    await world.register(runnerName, ['self-hosted']);
    expect(await world.sweep()).toMatchObject({
      findings: [{ kind: 'orphaned_registration', name: runnerName }],
    });
  });

  test('stuck_runner: its worker has not returned', async () => {
    const life = await world.startRunner({ phase: 'Busy' });
    const { searchAttributes } = await life.handle.describe();
    const [listedName] = searchAttributes['RunnerName'] as string[];
    expect(await world.sweep()).toMatchObject({
      findings: [
        {
          kind: 'stuck_runner',
          name: life.identity.workflowId,
          location: world.unpolled,
          status: 'marked',
        },
      ],
      marks: [{ unpolledSince: expect.any(String) }],
    });
    expect(await world.sweep()).toMatchObject({
      findings: [{ kind: 'stuck_runner', status: 'waits' }],
      marks: [{ unpolledSince: expect.any(String) }],
    });
    expect(await life.handle.describe()).toMatchObject({ status: { name: 'RUNNING' } });
    expect(await world.sweep({ terminateAfter: '0s' })).toMatchObject({
      findings: [
        {
          kind: 'stuck_runner',
          status: 'repaired',
          note: expect.stringContaining(`deregistration-${listedName}`),
        },
      ],
      marks: [],
    });
    expect(await life.handle.describe()).toMatchObject({ status: { name: 'TERMINATED' } });
    const { events } = await life.handle.fetchHistory();
    expect(events?.at(-1)?.workflowExecutionTerminatedEventAttributes?.reason).toBe(
      STUCK_RUNNER_MESSAGE,
    );
    expect(await handedOn(listedName ?? '')).toEqual({
      type: DEREGISTRATION_WORKFLOW,
      input: {
        organization: world.scope.name,
        credential: 'default',
        runner: { name: listedName },
        reason: STUCK_RUNNER_MESSAGE,
      },
    });
  });

  test('stuck_runner with a worker: woken, and never terminated', async () => {
    const life = await world.startRunner({ phase: 'Busy', taskQueue: await world.polledQueue() });
    // A workflow with a task that waits for its worker is not signaled.
    await until(
      'its first task to be over',
      async () => !(await life.handle.describe()).raw.pendingWorkflowTask,
    );
    for (const expected of ['marked', 'waits', 'waits', 'waits'])
      expect(await world.sweep()).toMatchObject({
        findings: [{ kind: 'stuck_runner', status: expected }],
      });
    expect(await life.handle.describe()).toMatchObject({ status: { name: 'RUNNING' } });
    const signals = await signalsOf(life.handle, podStateSignal.name);
    expect(signals.length).toBeGreaterThan(0);
    expect(signals[0]).toEqual({ uid: '', state: 'idle' });
  });

  test('unresponsive_runner: offline at the CI server with an idle pod in two checks; its workflow is notified, one that is online is not', async () => {
    const taskQueue = await world.polledQueue();
    const compute = world.harness.instance({
      podDefaults: { image: 'busybox', command: ['work'], supervisor: { image: 'supervisor:1' } },
    });
    const supervision: SupervisorConfig = {
      runnerKind: 'github',
      ephemeral: true,
      onTerm: 'stop',
      drainTimeoutMs: 0,
      signalTimeoutMs: 10_000,
      cleanupTimeoutMs: 5_000,
      signalTarget: 'group',
      startupTimeoutMs: 600_000,
    };
    const [hung, well] = [
      await world.startRunner({ taskQueue }),
      await world.startRunner({ taskQueue }),
    ];
    await world.provision(hung, { supervision }, compute);
    const { registration } = await world.provision(well, { supervision }, compute);
    const { runner } = await WireRunner.start(world.simulator.url, registration);
    await world.simulator.waitFor(
      () => world.simulator.runner(well.runnerName)?.status === 'online',
      'it to be online',
    );
    const item = {
      kind: 'unresponsive_runner',
      name: hung.identity.workflowId,
      reason: UNRESPONSIVE_RUNNER_MESSAGE,
    };
    expect(await world.sweep()).toMatchObject({
      findings: [{ ...item, status: 'marked' }],
      marks: [{ kind: 'unresponsive_runner', key: hung.runnerName }],
    });
    expect(await world.sweep()).toMatchObject({ findings: [{ ...item, status: 'waits' }] });
    expect(await signalsOf(hung.handle, replaceIdleSignal.name)).toEqual([]);
    expect(await world.sweep({ unresponsiveAfter: '0s' })).toMatchObject({
      findings: [{ ...item, status: 'repaired' }],
      marks: [],
    });
    expect(await signalsOf(hung.handle, replaceIdleSignal.name)).toEqual([
      { runnerName: hung.runnerName, reason: UNRESPONSIVE_RUNNER_MESSAGE },
    ]);
    runner.stop();
  });

  test('expired_pod: of a runner that completed, after maxPodAge', async () => {
    const life = await world.finished();
    const pod = await world.run(life);
    await world.harness.end(pod, 0);
    expect(await world.sweep()).toMatchObject({ findings: [], skipped: { retained: 1 } });
    expect(await world.sweep({ maxPodAge: '0s' })).toMatchObject({
      findings: [{ kind: 'expired_pod', status: 'marked' }],
    });
    expect(await world.sweep({ maxPodAge: '0s' })).toMatchObject({
      findings: [{ kind: 'expired_pod', status: 'repaired' }],
    });
    await world.harness.finishTermination(pod);
    expect(await world.names()).toMatchObject({ pods: [] });
  });

  test('orphaned_resource: Secret and claim of a runner that does not exist', async () => {
    const life = await world.terminated();
    const volumeClaims = [{ name: 'state', mountPath: '/state', storage: '1Gi' }];
    const { pod } = await world.provision(life, { volumeClaims });
    await world.harness.vanish(pod);
    await world.ciServer.removeRegistration(
      world.scope,
      String(world.simulator.runner(life.runnerName)?.id ?? 0),
    );
    const { secrets, claims } = await world.names();
    expect([secrets.length, claims.length]).toEqual([1, 1]);
    expect(await world.sweep()).toMatchObject({
      counts: { orphaned_resource: { found: 2, marked: 2 } },
    });
    expect([
      (await world.object('secret', secrets[0] ?? ''))?.mark,
      (await world.object('claim', claims[0] ?? ''))?.mark,
    ]).toEqual([
      expect.stringContaining('orphaned_resource: the Secret'),
      expect.stringContaining('orphaned_resource: the claim'),
    ]);
    expect(await world.sweep()).toMatchObject({ counts: { orphaned_resource: { repaired: 2 } } });
    // The claim goes as soon as the controller of its protection has seen that nobody uses it.
    await untilSeen(
      'nothing to be left',
      async () => await world.names(),
      (names) => Object.values(names).flat().length === 0,
    );
  });

  test('orphaned_resource: the claim of a terminated job, which belongs to none of its steps', async () => {
    const compute = world.harness.instance({
      policy: HARNESS_POLICY,
      podDefaults: { image: 'img', jobClaim: { size: '1Gi' } },
    });
    const [step, job] = [await world.startRunner(), await world.startRunner()];
    const storage = {
      path: 'jobs/web/run/test-unit',
      sharedDirSources: [],
      timeoutMs: 1_000,
      job: { ...job.identity, attempt: 0 },
    };
    const pod = await world.run(step, undefined, { storage }, compute);
    const { claims } = await world.names();
    expect(claims).toEqual([expect.stringMatching(/-job$/)]);
    for (const _ of [1, 2])
      expect(await world.sweep()).toMatchObject({ counts: { orphaned_resource: { found: 0 } } });
    await job.handle.terminate('by hand');
    await world.harness.vanish(pod);
    await step.handle.terminate('by hand');
    for (const status of ['marked', 'repaired'])
      expect((await world.sweep()).findings).toContainEqual(
        expect.objectContaining({ kind: 'orphaned_resource', name: `claim ${claims[0]}`, status }),
      );
    await untilSeen(
      'nothing to be left',
      async () => await world.names(),
      (names) => Object.values(names).flat().length === 0,
    );
  });

  test('orphaned_resource: objects that a job left next to a runner whose pod is deleted; never foreign objects', async () => {
    const { namespace } = world.harness;
    const compute = world.harness.instance({ jobPodNamespaces: [namespace] });
    const sweep = async (input: SweepInput = {}): Promise<SweepReport> =>
      await world.sweep(input, { compute });
    const life = await world.terminated();
    const pod = await world.run(life);
    const left = await makeJobObjects(world.harness, pod.name, { scheduler: 'contract' });
    const others = await makeJobObjects(world.harness, 'theirs-0123456789', {
      scheduler: 'contract',
    });
    const names = async (objects: JobObjects): Promise<string[]> =>
      Object.keys(await readJobObjects(world.harness, objects));
    expect(await sweep({ minAge: '10m' })).toMatchObject({
      findings: [],
      skipped: { in_use: 4, foreign: 4 },
    });

    await world.harness.vanish(pod);
    expect(await sweep()).toMatchObject({
      incompleteLists: [],
      counts: { orphaned_resource: { found: 4, marked: 4 } },
      findings: expect.arrayContaining([
        expect.objectContaining({
          name: `job pod ${left.job.name}`,
          reason: `the job pod of a runner whose pod ${pod.name} is gone`,
          workflowId: life.identity.workflowId,
        }),
      ]),
    });
    expect(await sweep()).toMatchObject({
      counts: { orphaned_resource: { repaired: 4 } },
      skipped: { foreign: 4 },
    });
    await untilSeen(
      'nothing of it to be left',
      async () => await names(left),
      (each) => each.length === 0,
    );
    expect(await names(others)).toHaveLength(4);
    expect(await sweep()).toMatchObject({ findings: [] });
  });
});
