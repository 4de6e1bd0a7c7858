/** The sweep on a real kubelet: what it ends, and what it does not touch. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SWEEP_MARK_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import {
  ORPHANED_POD_MESSAGE,
  ORPHANED_STEP_MESSAGE,
  SWEEP_WORKFLOW,
  sweepWorkflowId,
  type SweepReport,
} from '../../core/contract/index.ts';
import { runCli } from '../support/cli.ts';
import { ClusterJob } from '../support/clusterJob.ts';
import { HELD_JOB, countingJob, letGo } from '../support/clusterRun.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { TICK } from '../support/stoppedChildren.ts';
import { AT_ONCE, sweepAtOnce } from '../support/sweepCli.ts';
import { until } from '../support/until.ts';

await describeWithLab(
  'the sweep and pods with running jobs',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    let world: ClusterWorld;
    beforeAll(async () => {
      world = await ClusterWorld.open(lab);
      // The command runs in this process here, and reads its credential's token from the environment.
      process.env['TOKEN_OF_DEFAULT'] = world.settings['TOKEN_OF_DEFAULT'];
    }, 120_000);
    afterAll(async () => await world.close(), 120_000);

    /** By a worker. */
    const sweep = async (): Promise<SweepReport> =>
      (await world.client.workflow.execute(SWEEP_WORKFLOW, {
        workflowId: sweepWorkflowId(world.taskQueue),
        taskQueue: world.taskQueue,
        args: [AT_ONCE],
      })) as SweepReport;

    /** Lists have it, by which a sweep goes. */
    const ended = async (workflowId: string): Promise<void> =>
      await until(
        `the end of ${workflowId} to be listed`,
        async () =>
          (
            await world.client.workflow.count(
              `WorkflowId = '${workflowId}' AND ExecutionStatus = 'Terminated'`,
            )
          ).count === 1,
      );

    test('a busy runner whose workflow was terminated: its job stops within its grace period, and the runner shows why', async () => {
      const run = await world.start('terminated');
      const job = await run.runJob(countingJob(120));
      await run.handle.terminate('by hand');
      await ended(run.handle.workflowId);
      const [pod] = await run.pods();
      const name = pod?.metadata?.name ?? '';

      const first = await sweep();
      expect(first.findings).toEqual([
        expect.objectContaining({
          kind: 'orphaned_pod',
          name,
          status: 'marked',
          workflowId: run.handle.workflowId,
        }),
      ]);
      const [marked] = await run.pods();
      expect(marked?.metadata).toMatchObject({
        uid: pod?.metadata?.uid,
        annotations: { [SWEEP_MARK_ANNOTATION]: expect.stringContaining(ORPHANED_POD_MESSAGE) },
      });
      expect(marked?.metadata?.deletionTimestamp).toBeUndefined();
      expect(run.job(job)).toMatchObject({ status: 'in_progress' });

      expect((await sweep()).findings).toEqual([
        expect.objectContaining({ kind: 'orphaned_pod', name, status: 'repaired' }),
      ]);
      await until(
        'the pod to be gone',
        async () => (await run.pods()).length === 0,
        undefined,
        90_000,
      );
      run.expectInterrupted(job);
      expect(run.podsEver()).toHaveLength(1);
      // Its registration goes with its job, or is removed by the workflow that it was handed on to.
      await until(
        'the registration to be gone',
        () => run.registrations().length === 0,
        () => JSON.stringify(run.registrations()),
        120_000,
      );

      for (const args of [
        ['get', run.handle.workflowId],
        ['list', '--all', '--scope', run.key],
      ]) {
        const { stdout } = await runCli(['runner', ...args], world.settings);
        expect(stdout).toContain(ORPHANED_POD_MESSAGE);
        expect(stdout).toContain('by hand');
        expect(stdout).not.toContain('Busy');
      }
    }, 240_000);

    test('a step whose job was terminated: it stops within its grace period, and shows why', async () => {
      const script = `trap 'sleep 1; echo "cleaned up"; exit 1' TERM; echo up; ${TICK}`;
      const job = await ClusterJob.start(world, 'broken-off', {
        test: [{ name: 'unit', image: 'holdfast.test/busybox:1', commands: script }],
        post: [{ name: 'clean', image: 'holdfast.test/busybox:1', commands: 'true' }],
      });
      const log = await job.up('unit');
      await job.handle.terminate('by hand');
      await ended(job.id);
      const life = world.client.workflow.getHandle(`${job.id}-test-1`);
      const first = await sweep();
      expect(first.findings).toEqual([
        expect.objectContaining({
          kind: 'orphaned_step',
          status: 'marked',
          workflowId: life.workflowId,
        }),
      ]);
      expect((await sweep()).findings).toEqual([
        expect.objectContaining({ kind: 'orphaned_step', status: 'repaired' }),
      ]);
      expect(await life.result()).toMatchObject({
        outcome: 'aborted',
        message: expect.stringContaining(ORPHANED_STEP_MESSAGE),
      });
      expect((await log.complete()).text).toContain('cleaned up');
      await until(
        'the pod to be gone',
        async () =>
          (await world.namespace.core.listNamespacedPod({ namespace: world.namespace.name })).items
            .length === 0,
      );
      expect(job.pods()).toEqual(['test-1']);
    }, 240_000);

    test('a worker that ends during a job: nothing is cancelled, and no sweep, with or without a worker, changes anything', async () => {
      const run = await world.start('handed-back');
      const job = await run.runJob(HELD_JOB);
      const { pod } = await run.listens();
      const { worker } = world;
      worker.kill('SIGTERM');
      expect(await worker.ended).toBe(143);
      const untouched = async (): Promise<void> => {
        const [pod] = await run.pods();
        expect(pod?.metadata?.deletionTimestamp).toBeUndefined();
        expect(pod?.metadata?.annotations?.[SWEEP_MARK_ANNOTATION]).toBeUndefined();
        expect(run.registrations()).toHaveLength(1);
      };
      for (let looks = 0; looks < 2; looks++) {
        // By an administrator: a worker's account may not list Secrets.
        const { status, stdout } = await sweepAtOnce(
          { ...world.settings, HOLDFAST_KUBECONFIG: world.kubeconfig },
          true,
        );
        expect({ status, report: JSON.parse(stdout) as SweepReport }).toMatchObject({
          status: 0,
          report: { incompleteLists: [], findings: [], examined: { runners: 1, pods: 1 } },
        });
        await untouched();
      }
      await world.startWorker();
      expect((await sweep()).findings).toEqual([]);
      await untouched();
      await letGo(world.namespace, pod);
      expect(await run.ends()).toMatchObject({
        outcome: 'succeeded',
        attempt: 1,
        replacements: [],
      });
      run.expectUnharmed(job);
      expect(run.podsEver()).toHaveLength(1);
    }, 240_000);
  },
);
