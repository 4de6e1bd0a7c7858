/** Runners of a real Gitea in pods, with its official runner under the supervisor. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { cancelSignal, drainUpdate, type RunnerInput } from '../../core/contract/index.ts';
import { letGo, HELD_JOB, type ClusterRun } from '../support/clusterRun.ts';
import type { ClusterWorld } from '../support/clusterWorld.ts';
import { Gitea, type GiteaJobState } from '../support/gitea.ts';
import { openGiteaPods } from '../support/giteaPods.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

jest.setTimeout(300_000);

const REPOSITORY = 'acme/app';
const SECRET = 'webhook secret';
/** The last line of {@link HELD_JOB}, not its text. */
const FINISHED = /^\S+ finished$/m;

await describeWithLab(
  'Runners of Gitea in pods',
  { gitea: true, temporal: true, nodes: 'kubelet' },
  (lab) => {
    const gitea = new Gitea(lab.gitea);
    let world: ClusterWorld;
    let hook: number;
    let label: string;

    beforeAll(async () => {
      world = await openGiteaPods(lab, gitea, { HOLDFAST_WEBHOOK_SECRET: SECRET });
      const url = new URL('/webhooks/gitea', world.worker.webhook()).href;
      ({ id: hook } = await gitea.api<{ id: number }>('POST', '/orgs/acme/hooks', {
        type: 'gitea',
        active: true,
        events: ['workflow_job'],
        config: { url, content_type: 'json', secret: SECRET },
      }));
    });
    beforeEach(() => void (label = `pod-${randomUUID().slice(0, 8)}`));
    afterEach(async () => {
      expect(await gitea.runners()).toEqual([]);
      await world.expectNothingLeft();
    });
    afterAll(async () => {
      await gitea.api('DELETE', `/orgs/acme/hooks/${hook}`);
      await world.close();
      await gitea.clear();
    });

    const start = async (more: Partial<RunnerInput> = {}): Promise<ClusterRun> => {
      const input: Partial<RunnerInput> = {
        ciServer: 'gitea',
        organization: 'acme',
        labels: [label],
      };
      const run = await world.start('gitea', { ...input, ...more });
      await run.reaches('idle', ({ phase }) => phase === 'Idle');
      return run;
    };

    /** A job that is running until its pod lets it go. */
    const heldJob = async (run: ClusterRun): Promise<{ job: GiteaJobState; pod: string }> => {
      const job = await gitea.queueJob(REPOSITORY, [label], HELD_JOB);
      const { pod = '' } = await run.reaches('busy', ({ phase }) => phase === 'Busy');
      // Gitea's event may precede the runner's start of the job.
      await logged(pod, / repo is /);
      return { job, pod };
    };

    const logged = async (pod: string, message: RegExp): Promise<void> => {
      const { core, name: namespace } = world.namespace;
      await until(`the runner to log ${message.source}`, async () =>
        message.test(
          await core.readNamespacedPodLog({ namespace, name: pod, container: 'runner' }),
        ),
      );
    };
    const toldToStop = async (pod: string): Promise<void> =>
      await logged(pod, /shutdown initiated/);

    test('idle, busy, ended with its job', async () => {
      const run = await start();
      const { job, pod } = await heldJob(run);
      await letGo(world.namespace, pod);
      expect(await run.handle.result()).toMatchObject({ outcome: 'succeeded', exitCode: 0 });
      expect(await gitea.waitForJob(REPOSITORY, job.id, 'completed')).toMatchObject({
        conclusion: 'success',
      });
      expect(await gitea.jobLog(REPOSITORY, job.id)).toMatch(FINISHED);
    });

    test('drained while idle: its pod is deleted, and a later job stays queued', async () => {
      const run = await start();
      await run.handle.executeUpdate(drainUpdate.name, { args: [{ reason: 'test' }] });
      await run.handle.result();
      const { id, run_id: workflow } = await gitea.queueJob(REPOSITORY, [label]);
      expect(await gitea.job(REPOSITORY, id)).toMatchObject({ status: 'queued' });
      await gitea.cancelRun(REPOSITORY, workflow);
    });

    test('drained while busy: its job ends normally', async () => {
      const run = await start();
      const { job, pod } = await heldJob(run);
      await run.handle.executeUpdate(drainUpdate.name, { args: [{ reason: 'test' }] });
      await letGo(world.namespace, pod);
      expect(await run.handle.result()).toMatchObject({ outcome: 'succeeded' });
      expect(await gitea.job(REPOSITORY, job.id)).toMatchObject({ conclusion: 'success' });
      expect(await gitea.jobLog(REPOSITORY, job.id)).toMatch(FINISHED);
    });

    test('static: it runs one job after another; drained while busy, it ends with that job', async () => {
      const run = await start({ ephemeral: false });
      const first = await heldJob(run);
      await letGo(world.namespace, first.pod);
      expect(await gitea.waitForJob(REPOSITORY, first.job.id, 'completed')).toMatchObject({
        conclusion: 'success',
      });
      await run.reaches('idle again', ({ phase }) => phase === 'Idle');
      const { job, pod } = await heldJob(run);
      expect(pod).toBe(first.pod);
      await run.handle.executeUpdate(drainUpdate.name, { args: [{ reason: 'test' }] });
      await letGo(world.namespace, pod);
      expect(await run.handle.result()).toMatchObject({ outcome: 'succeeded' });
      expect(await gitea.job(REPOSITORY, job.id)).toMatchObject({ conclusion: 'success' });
      expect(await gitea.jobLog(REPOSITORY, job.id)).toMatch(FINISHED);
    });

    test('pod deleted while busy: a job that ends in the grace period is not lost', async () => {
      const run = await start({ stop: { signalTimeout: '40s' } });
      const { job, pod } = await heldJob(run);
      const { core, name: namespace } = world.namespace;
      await core.deleteNamespacedPod({ namespace, name: pod });
      await toldToStop(pod);
      await letGo(world.namespace, pod);
      expect(await run.handle.result()).toMatchObject({ outcome: 'succeeded', exitCode: 0 });
      expect(await gitea.waitForJob(REPOSITORY, job.id, 'completed')).toMatchObject({
        conclusion: 'success',
      });
    });

    test('evicted while idle: its registration is removed, and its replacement runs a job', async () => {
      const run = await start({ onEviction: 'replace' });
      const { pod: first = '' } = await run.status();
      await run.evict(first);
      await run.reaches('idle again', ({ attempt, phase }) => attempt === 2 && phase === 'Idle');
      expect(await gitea.runners()).toHaveLength(1);
      const { job, pod } = await heldJob(run);
      await letGo(world.namespace, pod);
      expect(await run.handle.result()).toMatchObject({
        outcome: 'succeeded',
        replacements: [{ cause: 'evicted' }],
      });
      expect(await gitea.waitForJob(REPOSITORY, job.id, 'completed')).toMatchObject({
        conclusion: 'success',
      });
    });

    test('stopped while busy: its job has the grace period, and its log shows it', async () => {
      const run = await start({ stop: { signalTimeout: '40s' } });
      const { job, pod } = await heldJob(run);
      await run.handle.signal(cancelSignal, { mode: 'stop', reason: 'test' });
      await toldToStop(pod);
      await letGo(world.namespace, pod);
      await run.handle.result();
      // A canceled job would be a success, too: its last line tells.
      await gitea.waitForJob(REPOSITORY, job.id, 'completed');
      expect(await gitea.jobLog(REPOSITORY, job.id)).toMatch(FINISHED);
    });
  },
);
