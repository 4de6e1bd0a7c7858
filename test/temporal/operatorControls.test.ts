/**
 * Temporal's own commands on the wait of a runner (docs/operations.md), and paused workflows, on
 * servers that support them.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { OPEN_FILTER, isOpen } from '../../core/domain/workflowStatus.ts';
import { grpcStatus } from '../../activities/shared/grpcStatus.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld, RunnerRun } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

/** temporal.api.enums.v1.PendingActivityState */
const PAUSE_REQUESTED = 5;
const UNIMPLEMENTED = 12;

await describeWithLab("Temporal's own commands of an operator", { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  const pending = async ({ handle }: RunnerRun) =>
    (await handle.describe()).raw.pendingActivities ?? [];

  /** Starts a busy runner whose workflow waits for the end of its pod. */
  async function busyRunner(resync: string) {
    const run = await world.start({ intervals: { resync } });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', ({ phase }) => phase === 'Idle');
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await run.reaches('Busy', ({ phase }) => phase === 'Busy');
    const target = {
      namespace: world.client.options.namespace,
      execution: { workflowId: run.handle.workflowId },
      id: `ended/${pod}`,
      identity: 'operator',
    };
    await until('the wait for the end', async () =>
      (await pending(run)).some(({ activityId, state }) => activityId === target.id && state === 2),
    );
    const endJob = (): void => {
      ci.forget(runnerName);
      compute.endJob(pod);
      compute.end(pod, 0);
    };
    return { run, target, endJob };
  }

  const stateOf = async (run: RunnerRun): Promise<number | null | undefined> =>
    (await pending(run))[0]?.state;

  test('a paused wait still ends with the pod, as long as its attempt lasts', async () => {
    const { run, target, endJob } = await busyRunner('10m');
    await world.client.workflowService.pauseActivity(target);
    expect(await stateOf(run)).toBe(PAUSE_REQUESTED);
    endJob();
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  test('a paused wait that missed the event of its pod ends after it is unpaused', async () => {
    const { run, target, endJob } = await busyRunner('2s');
    await world.client.workflowService.pauseActivity(target);
    compute.muted = true;
    endJob();
    await world.client.workflowService.unpauseActivity(target);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  test('a wait that is reset or has other options continues', async () => {
    const { run, target, endJob } = await busyRunner('10m');
    await world.client.workflowService.resetActivity({ ...target, resetHeartbeat: true });
    await world.client.workflowService.updateActivityOptions({
      ...target,
      activityOptions: { startToCloseTimeout: { seconds: 2 as never } },
      updateMask: { paths: ['start_to_close_timeout'] },
    });
    await until('another attempt', async () => ((await pending(run))[0]?.attempt ?? 0) > 1);
    endJob();
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  /** @returns whether the server can pause workflows */
  async function pause({ handle: { workflowId } }: RunnerRun): Promise<boolean> {
    const { namespace } = world.client.options;
    try {
      await world.client.workflowService.pauseWorkflowExecution({
        namespace,
        workflowId,
        identity: 'operator',
        reason: 'inspection',
      });
      return true;
    } catch (error) {
      if (grpcStatus(error)?.code !== UNIMPLEMENTED) throw error;
      return false;
    }
  }

  test('the filter of open workflows matches running and paused ones only', async () => {
    const { run, endJob } = await busyRunner('10m');
    const open = async (): Promise<string[]> => {
      const ids: string[] = [];
      for await (const { workflowId } of world.client.workflow.list({
        query: `TaskQueue = '${world.taskQueue}' AND ${OPEN_FILTER}`,
      }))
        ids.push(workflowId);
      return ids;
    };
    await until('the runner in the list', async () => (await open()).length === 1);
    const isPaused = await pause(run);
    if (isPaused)
      await until(
        'the pause in the list',
        async () =>
          (
            await world.client.workflow.count(
              `TaskQueue = '${world.taskQueue}' AND ExecutionStatus = 'Paused'`,
            )
          ).count === 1,
      );
    expect(await open()).toEqual([run.handle.workflowId]);
    expect(isOpen((await run.handle.describe()).status)).toBe(true);
    endJob();
    if (isPaused)
      await world.client.workflowService.unpauseWorkflowExecution({
        namespace: world.client.options.namespace,
        workflowId: run.handle.workflowId,
        identity: 'operator',
      });
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    await until('no runner in the list', async () => (await open()).length === 0);
    expectNothingLeft({ compute, ci });
  });
});
