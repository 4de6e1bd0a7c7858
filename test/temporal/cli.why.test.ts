/** `holdfast why`: each situation is built on the real Temporal server, and one command names its cause. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { grpcStatus } from '../../activities/shared/grpcStatus.ts';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import { ComputeError } from '../../activities/ports/computeError.ts';
import {
  RUNNER_SET_WORKFLOW,
  SET_ROUTING_MEMO,
  setWorkflowId,
  type RunnerSetInput,
  type SetRunnerStatus,
  type WaitCause,
  type WhyAnswer,
} from '../../core/contract/index.ts';
import { runCli } from '../support/cli.ts';
import { holdfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';

const GRPC_UNIMPLEMENTED = 12;
const JOB = 4711;
const JOB_URL = `https://github.com/acme/app/actions/runs/1/job/${JOB}`;

await describeWithLab(
  'holdfast why, on a real Temporal server with the real workflows',
  { temporal: true },
  (lab) => {
    let all: MemoryWorld;
    let env: Record<string, string>;

    beforeEach(async () => {
      all = await memoryWorld(lab);
      env = {
        TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
        HOLDFAST_TASK_QUEUE: all.world.taskQueue,
        HOLDFAST_TEMPORAL_UI_URL: 'http://ui.example',
      };
    });
    afterEach(async () => await all.world.close());

    async function why(...args: string[]): Promise<WhyAnswer & { status: number }> {
      const { status, stdout, stderr } = await runCli(['why', ...args, '--json'], env);
      expect(stderr).toBe('');
      return { ...(JSON.parse(stdout) as WhyAnswer), status };
    }
    const causesOf = ({ causes }: WhyAnswer): WaitCause[] => causes.map(({ cause }) => cause);

    /** A set, which has had the event of one queued job. */
    async function setWithJob(input: Partial<RunnerSetInput> = {}): Promise<SetRun> {
      const set = await SetRun.start(all, { queueCheck: '0s', ...input });
      await set.tell(set.event('queued', JOB));
      await set.reaches('the job', ({ jobs }) => jobs.queued === 1);
      return set;
    }
    async function listed(set: SetRun): Promise<void> {
      await until('visibility to list the set', async () => {
        const { status } = await runCli(['why', JOB_URL, '--json'], env);
        return status === 0;
      });
      await set.status();
    }

    test('max: for the job and for the set, and since when for the job', async () => {
      const set = await setWithJob({ minIdle: 0, max: 0 });
      await listed(set);
      const answer = await why(JOB_URL);
      expect(answer).toMatchObject({
        status: 0,
        subject: { kind: 'job', id: String(JOB) },
        state: 'waiting',
        servedBy: { id: setWorkflowId(set.name), because: 'reported' },
        missing: [],
        links: [{ id: setWorkflowId(set.name), url: expect.stringContaining('http://ui.example') }],
      });
      expect(causesOf(answer)).toEqual(['max']);
      expect(causesOf(await why(set.name))[0]).toBe('max');
      expect(await why(JOB_URL, '--labels', 'self-hosted,LINUX')).toMatchObject({
        servedBy: { because: 'only_match' },
      });
      const { stdout } = await runCli(['why', String(JOB)], env);
      expect(stdout).toMatch(/^job 4711: waiting\nServed by: +set-.*\n.*\nCause: +max: /);
    });

    test('a schedule that lowers max, until its end', async () => {
      const set = await setWithJob({
        minIdle: 0,
        max: 5,
        schedules: [{ cron: '* * * * *', duration: '1h', minIdle: 0, max: 0 }],
      });
      await listed(set);
      const answer = await why(JOB_URL);
      expect(causesOf(answer)).toEqual(['schedule', 'max']);
      expect(Date.parse(answer.causes[0]?.until ?? '')).toBeGreaterThan(Date.now());
    });

    test('a pause of the set, and a pause of its workflow', async () => {
      const set = await setWithJob({ minIdle: 0, max: 5, paused: true });
      await listed(set);
      expect((await why(JOB_URL)).causes).toEqual([
        expect.objectContaining({
          cause: 'paused',
          fix: expect.stringContaining(`set resume ${set.name}`),
        }),
      ]);
      if (!(await pauseWorkflow(set))) return;
      const answer = await why(set.name);
      expect(answer.causes).toEqual([
        expect.objectContaining({
          cause: 'workflow_paused',
          text: expect.stringContaining('a look'),
          since: expect.stringMatching(/^20/),
        }),
      ]);
      // It answers no query, so only its labels lead to it.
      expect(causesOf(await why(JOB_URL))).toEqual(['workflow_paused']);
      expect(causesOf(await why(JOB_URL, '--labels', 'linux'))).toContain('workflow_paused');
    });

    test('no worker polls: for the job and for the set', async () => {
      const { client } = all.world;
      const lonely = `${all.world.taskQueue}-lonely`;
      const name = lonely.replace('test-', 's');
      const labels = ['linux'];
      const workflowId = setWorkflowId(name);
      await client.workflow.start(RUNNER_SET_WORKFLOW, {
        workflowId,
        taskQueue: lonely,
        args: [{ name, minIdle: 0, max: 5, template: { organization: 'acme', labels } }],
        memo: {
          [SET_ROUTING_MEMO]: {
            ciServer: 'github',
            labels,
            scope: 'acme',
            scopeKind: 'organization',
          },
        },
      });
      expect((await why(name)).causes).toEqual([
        expect.objectContaining({
          cause: 'no_worker',
          fix: expect.stringContaining(`HOLDFAST_TASK_QUEUE=${lonely}`),
        }),
      ]);
      const queue = ['--task-queue', lonely];
      await until('visibility to list it', async () =>
        causesOf(await why(JOB_URL, ...queue)).includes('no_worker'),
      );
      expect(await why(JOB_URL, '--labels', 'linux', ...queue)).toMatchObject({
        state: 'unknown',
        servedBy: { id: workflowId },
        causes: [{ cause: 'no_worker' }],
      });
      await terminateAll(client, lonely);
    });

    test('no worker has the credential of a runner', async () => {
      const ports = { compute: all.compute, ciServers: all.ci };
      const without = await holdfastWorld(lab.temporal?.address ?? '', ports, []);
      const { handle } = await without.start();
      await until('the registration to wait', async () =>
        causesOf(await why(handle.workflowId)).includes('no_worker'),
      );
      await without.close();
    });

    test('no response: the workers have just stopped', async () => {
      const set = await setWithJob({ minIdle: 0, max: 5 });
      await all.world.suspend();
      expect(causesOf(await why(set.name))).toEqual(['no_answer']);
    });

    test('starts fail, with the error of the API server', async () => {
      const words = 'no PriorityClass with name urgent was found';
      all.compute.refusals.set('createPod', () => new ComputeError('invalid', words));
      const set = await setWithJob({ minIdle: 0, max: 5 });
      await listed(set);
      await set.reaches('the breaker', ({ blockedReason = '' }) => blockedReason.includes('×'));
      const answer = await why(JOB_URL);
      expect(causesOf(answer)[0]).toBe('breaker');
      expect(answer.causes[0]?.text).toContain(words);
    });

    test('a quota and a rejected credential, from the runner that starts for the job', async () => {
      all.compute.refusals.set(
        'createPod',
        () => new ComputeError('quota_exceeded', 'exceeded quota: pods=10'),
      );
      const set = await setWithJob({ minIdle: 0, max: 5 });
      await listed(set);
      await until('the quota', async () => causesOf(await why(JOB_URL)).includes('quota'));
      const [cause] = (await why(JOB_URL)).causes;
      expect(cause).toMatchObject({
        text: expect.stringContaining('pods=10'),
        until: expect.stringMatching(/^20/),
        runner: expect.stringMatching(/^runner-/),
      });
      expect(await why(cause?.runner ?? '')).toMatchObject({
        subject: { kind: 'runner' },
        state: 'waiting',
        causes: [{ cause: 'quota' }],
      });
      const answer = new CiServerError('credentials', 'Bad credentials', { status: 401 });
      all.ci.script.push({ method: 'register', answer, repeat: true });
      const { handle } = await all.world.start();
      await until('the rejection', async () =>
        causesOf(await why(handle.workflowId)).includes('credential_rejected'),
      );
    });

    test('no set has the labels: each shows what it lacks; without labels nothing is claimed', async () => {
      const set = await SetRun.start(all, { minIdle: 0, max: 5, queueCheck: '0s' });
      await until('visibility to list it', async () => {
        const { otherSets = [] } = await why(JOB_URL);
        return otherSets.some(({ labels }) => labels.includes('linux'));
      });
      expect(await why(JOB_URL, '--labels', 'self-hosted,gpu')).toMatchObject({
        status: 0,
        state: 'waiting',
        causes: [{ cause: 'no_set' }],
        otherSets: [
          { id: setWorkflowId(set.name), mismatches: ['labels'], missingLabels: ['gpu'] },
        ],
      });
      expect(await why(JOB_URL, '--labels', 'linux')).toMatchObject({
        status: 0,
        state: 'unknown',
        causes: [{ cause: 'not_reported' }],
        servedBy: { id: setWorkflowId(set.name), because: 'only_match' },
      });
      expect(await why(JOB_URL)).toMatchObject({
        status: 3,
        state: 'unknown',
        causes: [],
        missing: [expect.stringContaining('--labels')],
      });
    });

    test('a running job, its runner, and its verdict afterwards', async () => {
      const set = await setWithJob({ minIdle: 0, max: 5 });
      await listed(set);
      const { runners } = await set.comesTo({ idle: 1 });
      expect(causesOf(await why(JOB_URL))).toEqual(['not_assigned']);
      const [runner] = runners as [SetRunnerStatus];
      expect(await why(runner.workflowId)).toMatchObject({
        state: 'ready',
        causes: [{ cause: 'idle' }],
      });
      await set.tell(set.event('in_progress', JOB, runner.runnerName));
      set.startJob(runner);
      await set.reaches('the job to run', ({ jobs }) => jobs.running === 1);
      await until('its runner to be busy', async () =>
        causesOf(await why(runner.workflowId)).includes('job_running'),
      );
      expect(await why(JOB_URL)).toMatchObject({
        state: 'running',
        runner: runner.workflowId,
        causes: [{ cause: 'job_running' }],
      });
      expect(await why('https://github.com/acme/app/actions/runs/1')).toMatchObject({
        subject: { kind: 'run', id: '1' },
        state: 'running',
        jobs: [{ jobId: String(JOB), state: 'assigned', set: setWorkflowId(set.name) }],
      });
      expect(await why('https://github.com/acme/app/actions/runs/2')).toMatchObject({ jobs: [] });
      set.endJob(runner);
      await until('its end', async () => (await why(runner.workflowId)).state === 'ended');
      expect(await why(runner.runnerName ?? '')).toMatchObject({
        verdict: {
          outcome: 'succeeded',
          evidence: expect.arrayContaining([expect.stringContaining('exit code 0')]) as unknown,
        },
      });
      await set.tell(set.event('completed', JOB, runner.runnerName));
      await until('the end of the job', async () => (await why(JOB_URL)).state === 'ended');
    });

    test.each([
      [['nobody'], 3],
      [['https://github.com/acme/app/pull/7'], 2],
      [['nobody', '--labels', 'linux'], 2],
    ])('%j: exit status %i', async (args, status) => {
      expect((await runCli(['why', ...args], env)).status).toBe(status);
    });

    /** @returns whether the server can pause workflows */
    async function pauseWorkflow({ handle: { workflowId } }: SetRun): Promise<boolean> {
      const { workflowService, options } = all.world.client;
      try {
        await workflowService.pauseWorkflowExecution({
          namespace: options.namespace,
          workflowId,
          identity: 'operator',
          reason: 'a look',
        });
        return true;
      } catch (error) {
        if (grpcStatus(error)?.code !== GRPC_UNIMPLEMENTED) throw error;
        return false;
      }
    }
  },
);
