import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import {
  JOB_GROUP_WORKFLOW,
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
  groupedJobId,
  jobGroupStatusQuery,
  jobRevisionSignal,
  setWorkflowId,
  statusQuery,
  type JobRevision,
  type RunnerSetInput,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import { checkVersions } from '../../worker/checks/versionCheck.ts';
import { HoldfastPlugin } from '../../worker/plugin/plugin.ts';
import { workerDeploymentOptions } from '../../worker/plugin/versioning.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { playsByItself, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { notifySet } from '../support/setCommands.ts';
import { until } from '../support/until.ts';

/** temporal.api.enums.v1.VersioningBehavior */
const PINNED = 1;

await describeWithLab('worker versions', { temporal: true }, (lab) => {
  /** Of each test, and the name of its deployment. */
  let taskQueue: string;
  let connection: Connection;
  let native: NativeConnection;
  let client: Client;
  let compute: FakeCompute;
  let ci: FakeCiServer;
  const running: { worker: Worker; done: Promise<void> }[] = [];

  beforeEach(async () => {
    const { address = '' } = lab.temporal ?? {};
    taskQueue = `holdfast-${randomUUID().slice(0, 8)}`;
    connection = await Connection.connect({ address });
    native = await NativeConnection.connect({ address });
    client = new Client({ connection });
    compute = new FakeCompute();
    ci = new FakeCiServer();
  });
  afterEach(async () => {
    await stopWorkers();
    await native.close();
    await connection.close();
  });

  async function stopWorkers(): Promise<void> {
    for (const { worker } of running) worker.shutdown();
    await Promise.all(running.splice(0).map(async ({ done }) => await done));
  }

  /** @param buildId - absent: without versioning */
  async function startWorker(buildId?: string): Promise<void> {
    await poll(buildId);
    if (buildId !== undefined) await makeCurrent(buildId);
  }

  /** Starts a worker that nothing has made current. */
  async function poll(buildId: string | undefined): Promise<void> {
    const plugin = new HoldfastPlugin({
      compute,
      ciServers: ci,
      ciQueues: [{ credential: 'default' }],
    });
    const versioned =
      buildId === undefined
        ? {}
        : {
            workerDeploymentOptions: workerDeploymentOptions({
              deploymentName: taskQueue,
              buildId,
            }),
          };
    const worker = await Worker.create({
      connection: native,
      taskQueue,
      plugins: [plugin],
      ...versioned,
    });
    running.push({ worker, done: worker.run() });
  }

  /** @param buildId - empty: workers without a version are given what is new */
  async function makeCurrent(buildId: string): Promise<void> {
    // The server knows a version once its workers have polled.
    await until(`version ${buildId} to be current`, async () => {
      await connection.workflowService.setWorkerDeploymentCurrentVersion({
        namespace: 'default',
        deploymentName: taskQueue,
        buildId,
        identity: 'test',
      });
      return true;
    });
  }

  /** Waits for the set's one runner, and brings it up. @returns its workflow's id */
  async function bringUp(set: WorkflowHandle): Promise<string> {
    let workflowId = '';
    await until(
      'a runner',
      async () =>
        (workflowId =
          (await querySetStatus(client, set.workflowId)).runners[0]?.workflowId ?? '') !== '',
    );
    await podIdle(workflowId);
    return workflowId;
  }

  /** Brings the only pod of a runner up. @returns its name */
  async function podIdle(workflowId: string): Promise<string> {
    await until('its pod', () => compute.pods.size === 1);
    const [pod = ''] = compute.pods.keys();
    compute.start(pod);
    const status = async (): Promise<RunnerStatus> =>
      await client.workflow.getHandle(workflowId).query(statusQuery);
    ci.connect((await status()).runnerName ?? '');
    // What a worker does not live to see of it, the next one waits for.
    await until('it to be idle', async () => (await status()).phase === 'Idle');
    return pod;
  }

  /** Whether the server tells a pinned workflow that another version is current, as 1.31 does. */
  async function tellsOfVersions(): Promise<boolean> {
    const { serverVersion } = await connection.workflowService.getSystemInfo({});
    const [major = 0, minor = 0] = serverVersion.split('.').map(Number);
    return major > 1 || minor >= 31;
  }

  async function buildOf(workflowId: string): Promise<string | undefined> {
    const { raw } = await client.workflow.getHandle(workflowId).describe();
    return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId ?? undefined;
  }

  /**
   * Versions that ran a pinned workflow, until the SDK's core completed a task by itself, which
   * sends the default behavior of the worker (docs/operations.md, "Worker versioning").
   */
  async function buildsOf(workflowId: string): Promise<Set<string>> {
    const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
    const tasks = (events ?? []).flatMap(
      ({ workflowTaskCompletedEventAttributes: task }) => task ?? [],
    );
    const byCore = tasks.findIndex(
      ({ versioningBehavior }) => Number(versioningBehavior) !== PINNED,
    );
    return new Set(
      tasks
        .slice(0, byCore === -1 ? undefined : byCore)
        .map(({ deploymentVersion }) => deploymentVersion?.buildId ?? ''),
    );
  }

  test('a set moves to the current version; its runner ends on the one that it started on', async () => {
    await startWorker('one');
    const name = `versions-${randomUUID().slice(0, 8)}`;
    const input: RunnerSetInput = {
      name,
      replicas: 1,
      template: { organization: 'acme', intervals: { listMaxAge: '100ms' } },
    };
    const set = await client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(name),
      taskQueue,
      args: [input],
    });
    const workflowId = await bringUp(set);
    expect([await buildOf(set.workflowId), await buildOf(workflowId)]).toEqual(['one', 'one']);
    await startWorker('two');
    await notifySet(client, name, { command: 'pause', reason: 'a look' });
    await until(
      'the set to run on version two',
      async () => (await buildOf(set.workflowId)) === 'two',
    );
    expect((await querySetStatus(client, set.workflowId)).runners).toMatchObject([{ workflowId }]);
    expect(await buildOf(workflowId)).toBe('one');
    // As docs/operations.md has people look for what keeps a version from going.
    const onVersionOne = async (): Promise<string[]> => {
      const ids: string[] = [];
      for await (const { workflowId } of client.workflow.list({
        query: `TemporalWorkerDeploymentVersion = '${taskQueue}:one' AND ExecutionStatus = 'Running'`,
      }))
        ids.push(workflowId);
      return ids;
    };
    await until(
      'only the runner to be listed by its version',
      async () => (await onVersionOne()).join() === workflowId,
    );
    await notifySet(client, name, { command: 'resume' });
    await notifySet(client, name, { command: 'drain', reason: 'the test is over' });
    await set.result();
    expect(compute.pods.size).toBe(0);
    expect(await buildsOf(workflowId)).toEqual(new Set(['one']));
  });

  test('a static runner moves to the current version with its next job', async () => {
    await startWorker('one');
    const workflowId = `runner-${randomUUID().slice(0, 8)}`;
    const run = await client.workflow.start(RUNNER_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [{ organization: 'acme', ephemeral: false, intervals: { listMaxAge: '100ms' } }],
    });
    const pod = await podIdle(workflowId);
    await startWorker('two');
    expect(await buildOf(workflowId)).toBe('one');
    compute.startJob(pod);
    const phase = async (): Promise<string> =>
      (await client.workflow.getHandle(workflowId).query(statusQuery)).phase;
    // With a server that does not tell, it stays, and ends where it began.
    const movesOn = await tellsOfVersions();
    if (movesOn) {
      await until('it to run on version two', async () => (await buildOf(workflowId)) === 'two');
      // The workers of the old version may go.
      const [old] = running.splice(0, 1);
      old?.worker.shutdown();
      await old?.done;
    } else await until('it to be busy', async () => (await phase()) === 'Busy');
    compute.endJob(pod);
    await until('the end of its job', async () => (await phase()) === 'Idle');
    await client.workflow.getHandle(workflowId).executeUpdate('drain', { args: [] });
    expect(await client.workflow.getHandle(workflowId).result()).toMatchObject({
      outcome: 'succeeded',
    });
    expect(await buildsOf(workflowId)).toEqual(new Set([movesOn ? 'two' : 'one']));
    expect(
      (await client.workflow.getHandle(workflowId, run.firstExecutionRunId).describe()).status.name,
    ).toBe(movesOn ? 'CONTINUED_AS_NEW' : 'COMPLETED');
    expect(compute.pods.size).toBe(0);
  });

  test('versioning is enabled and disabled under a set and its runner: both continue, and the set moves in between', async () => {
    await startWorker();
    const name = `versions-${randomUUID().slice(0, 8)}`;
    const input: RunnerSetInput = {
      name,
      replicas: 1,
      template: { organization: 'acme', ephemeral: false, intervals: { listMaxAge: '100ms' } },
    };
    const set = await client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(name),
      taskQueue,
      args: [input],
    });
    await bringUp(set);
    for (const buildId of ['one', 'two']) {
      await stopWorkers();
      await startWorker(buildId);
      await notifySet(client, name, { command: 'pause', reason: 'a look' });
      await until(
        `the set to run on version ${buildId}`,
        async () => (await buildOf(set.workflowId)) === buildId,
      );
      await notifySet(client, name, { command: 'resume' });
    }
    await stopWorkers();
    await makeCurrent('');
    await startWorker();
    await notifySet(client, name, { command: 'drain', reason: 'the test is over' });
    await set.result();
    expect(compute.pods.size).toBe(0);
  });

  test('the doctor shows the version for new workflows, and that there is none', async () => {
    const found = async (): Promise<string> =>
      (
        await checkVersions(
          {
            taskQueue,
            temporal: { namespace: 'default', address: 'localhost:7233', connectionOptions: {} },
          },
          connection,
        )
      )
        .map(({ level, message }) => `${level} ${message}`)
        .join();
    await poll('one');
    await until('the worker to be seen', async () => (await found()) !== '');
    expect(await found()).toBe(
      `error task queue "${taskQueue}": no version of its workers is current, so they are given nothing new (polling: one of ${taskQueue})`,
    );
    await makeCurrent('one');
    await until('its version to be seen', async () => (await found()).startsWith('ok'));
    expect(await found()).toBe(
      `ok task queue "${taskQueue}": new workflows start on version one of ${taskQueue}`,
    );
  });

  test('the runs of a change set move to the current version; each run ends on the one that it started on', async () => {
    playsByItself(compute, 'end');
    const group = `job-group:web:acme/web:main:push-${randomUUID().slice(0, 8)}`;
    const hand = async (commit: string): Promise<void> => {
      const version: JobRevision = {
        commit,
        at: new Date().toISOString(),
        job: { name: 'web', test: [step('unit')] },
      };
      await client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
        workflowId: group,
        taskQueue,
        args: [],
        signal: jobRevisionSignal,
        signalArgs: [version],
      });
    };
    const over = async (generation: number): Promise<void> =>
      await until(`run ${generation} to be over`, async () => {
        const {
          runNumber: newest,
          running: now,
          outcome,
        } = await client.workflow.getHandle(group).query(jobGroupStatusQuery);
        return newest === generation && now === undefined && outcome === 'succeeded';
      });
    await startWorker('three');
    await hand('aaa1');
    await over(1);
    await startWorker('four');
    await hand('bbb2');
    await over(2);
    expect(
      await Promise.all([groupedJobId(group, 1), groupedJobId(group, 2)].map(buildsOf)),
    ).toEqual([new Set(['three']), new Set(['four'])]);
    expect(await buildOf(group)).toBe('four');
    await client.workflow.getHandle(group).cancel();
  });
});
