/** `holdfast decommission` on a real Temporal server with the real workflows. */
import { ScheduleNotFoundError } from '@temporalio/client';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  JOB_GROUP_WORKFLOW,
  SCALE_SET_LISTENER_WORKFLOW,
  groupedJobId,
  jobGroupStatusQuery,
  jobRevisionSignal,
  scaleSetListenerWorkflowId,
  sweepScheduleId,
} from '../../core/contract/index.ts';
import { ensureSweepSchedule } from '../../worker/temporal/sweepSchedule.ts';
import { runCli, type CliRun } from '../support/cli.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { JobRun, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

await describeWithLab('holdfast decommission', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    compute = new FakeCompute();
    ci = new FakeCiServer();
    world = await holdfastWorld(lab.temporal?.address ?? '', { compute, ciServers: ci });
  });
  afterEach(async () => await world.close());

  const cli = async (...args: string[]): Promise<CliRun> =>
    await runCli(['decommission', ...args], {
      TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
      HOLDFAST_TASK_QUEUE: world.taskQueue,
    });
  const running = async (): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { workflowId } of world.client.workflow.list({
      query: `TaskQueue = '${world.taskQueue}' AND ExecutionStatus = 'Running'`,
    }))
      ids.push(workflowId);
    return ids.toSorted();
  };

  test('ends sets, drains other runners after their job, removes the Schedule, and ends when nothing runs', async () => {
    const set = await SetRun.start({ world, compute, ci }, { replicas: 2 });
    await set.comesTo({ idle: 2 });
    const busy = await world.start({ ephemeral: false });
    const pod = await busy.pod();
    compute.start(pod);
    const runnerName = (await busy.status()).runnerName ?? '';
    ci.connect(runnerName);
    await busy.reaches('Idle', ({ phase }) => phase === 'Idle');
    ci.setBusy(runnerName, true);
    await ensureSweepSchedule({
      client: world.client,
      taskQueue: world.taskQueue,
      intervalMs: 3_600_000,
    });
    await until('all to run', async () => (await running()).length === 4);

    let ended: CliRun | undefined;
    const run = cli('--yes', '--json', '--reason', 'moving').then((result) => (ended = result));
    let left: string[] = [];
    await until(
      'the busy one alone to be left',
      async () =>
        JSON.stringify((left = await running())) === JSON.stringify([busy.handle.workflowId]),
      () => `${left.join()} ${JSON.stringify(ended)}`,
    );
    await expect(
      world.client.schedule.getHandle(sweepScheduleId(world.taskQueue)).describe(),
    ).rejects.toThrow(ScheduleNotFoundError);
    await busy.reaches('Draining', ({ phase }) => phase === 'Draining');
    expect(ended).toBeUndefined();

    ci.setBusy(runnerName, false);
    const { status, stdout } = await run;
    expect({ status, document: JSON.parse(stdout) as object }).toEqual({
      status: 0,
      document: {
        taskQueue: world.taskQueue,
        requested: [busy.handle.workflowId, set.handle.workflowId],
        schedule: 'deleted',
      },
    });
    expect(await running()).toEqual([]);
  });

  test('ends change sets that wait for versions, and waits for the runs of others', async () => {
    const group = (base: string): string => `job-group:unit:acme/web:${base}:push`;
    const pushed = async (base: string): Promise<JobRun> => {
      const job = { name: 'unit', repository: 'acme/web', test: [step('unit')] };
      await world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
        workflowId: group(base),
        taskQueue: world.taskQueue,
        args: [],
        signal: jobRevisionSignal,
        signalArgs: [{ commit: 'aaa1', at: '2026-11-22T10:00:00Z', job }],
      });
      return JobRun.of({ world, compute }, groupedJobId(group(base), 1));
    };
    await (await pushed('main')).ends('test-1');
    await until(
      'the first to be over',
      async () =>
        (await world.client.workflow.getHandle(group('main')).query(jobGroupStatusQuery))
          .outcome !== undefined,
    );
    const held = await pushed('dev');
    await held.runs('test-1');
    await until('all to be seen', async () => (await running()).length === 4);

    let ended: CliRun | undefined;
    const run = cli('--yes', '--json').then((result) => (ended = result));
    let left: string[] = [];
    await until(
      'the first group to end',
      async () => !(left = await running()).includes(group('main')),
      () => `${left.join()} ${JSON.stringify(ended)}`,
    );
    expect(left).toEqual(expect.arrayContaining([group('dev'), held.id]));
    expect(ended).toBeUndefined();

    await held.ends('test-1');
    const { status, stdout } = await run;
    expect({ status, document: JSON.parse(stdout) as object }).toEqual({
      status: 0,
      document: {
        taskQueue: world.taskQueue,
        requested: [group('main'), group('dev')].toSorted(),
        schedule: 'none',
      },
    });
    expect((await held.result()).outcome).toBe('succeeded');
    expect(await running()).toEqual([]);
  });

  test('waits for the listener of a scale set, which ends with its set', async () => {
    const workflowId = scaleSetListenerWorkflowId('gone');
    const { taskQueue } = world;
    await world.suspend();
    const listener = await world.client.workflow.start(SCALE_SET_LISTENER_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [],
    });
    await until('it to be seen', async () => (await running()).includes(workflowId));
    expect(await cli('--json')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`${taskQueue}: 1 scaleSetListener;`),
    });
    await listener.terminate();
  });

  test('asks for confirmation, and does nothing without a terminal', async () => {
    const run = await world.start({ ephemeral: false });
    await until('it to be seen', async () => (await running()).length === 1);
    expect(await cli()).toMatchObject({
      status: 2,
      stderr: `error: would end everything on the task queue ${world.taskQueue}: 1 runner; add --yes to do it\n`,
    });
    expect(await running()).toEqual([run.handle.workflowId]);
  });

  test('without anything to do', async () => {
    expect(await cli()).toEqual({
      status: 0,
      stderr: '',
      stdout: `${world.taskQueue}: nothing runs\n`,
    });
  });
});
