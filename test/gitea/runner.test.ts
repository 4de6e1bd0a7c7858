/** Runners from their workflow to their end: a real Temporal, a real Gitea with its official runner as a process, real workflow files. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import {
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
  setWorkflowId,
  statusQuery,
  type RunnerInput,
  type RunnerResult,
  type RunnerSetInput,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { freePort } from '../../tools/lab/ports.ts';
import { Gitea, type GiteaJobState } from '../support/gitea.ts';
import { GITEA_RUNNER_SCRIPT, pathWithGiteaRunner } from '../support/giteaRunner.ts';
import { describeWithLab } from '../support/lab.ts';
import { SHORT_SET_INTERVALS } from '../support/setRun.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { until, untilSeen } from '../support/until.ts';
import {
  killWorkerProcesses,
  processSettings,
  startWorkerProcess,
} from '../support/workerProcess.ts';

const REPOSITORY = 'acme/app';
const SECRET = 'webhook secret';
const NEEDS = { gitea: true, temporal: true, kubernetes: false };
const JOBS = 8;

await describeWithLab('Runners of Gitea', NEEDS, (lab) => {
  const gitea = new Gitea(lab.gitea);
  let client: Client;
  let connection: Connection;
  let folder: string;
  let hook: number;
  let settings: Record<string, string>;

  beforeAll(async () => {
    connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
    client = new Client({ connection });
  });
  afterAll(async () => await connection.close());

  beforeEach(async () => {
    await gitea.clear();
    folder = await mkdtemp(join(tmpdir(), 'holdfast-gitea-jobs-'));
    const port = await freePort();
    settings = await processSettings({
      TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
      HOLDFAST_TASK_QUEUE: `gitea-${randomUUID().slice(0, 8)}`,
      // Each runner in its own folder.
      HOLDFAST_RUNNER_COMMAND: JSON.stringify(['sh', '-c', `RUNNER_HOME=$PWD exec ${GITEA_RUNNER_SCRIPT}`]), // prettier-ignore
      HOLDFAST_CREDENTIALS: JSON.stringify({
        default: {
          server: 'gitea',
          type: 'pat',
          tokenEnv: 'GITEA_TOKEN',
          apiUrl: `${gitea.access.url}/api/v1`,
        },
      }),
      HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${port}`,
      HOLDFAST_WEBHOOK_SECRET: SECRET,
      GITEA_TOKEN: gitea.access.token,
      PATH: await pathWithGiteaRunner(),
    });
    ({ id: hook } = await gitea.api<{ id: number }>('POST', '/orgs/acme/hooks', {
      type: 'gitea',
      active: true,
      events: ['workflow_job'],
      config: {
        url: `http://127.0.0.1:${port}/webhooks/gitea`,
        content_type: 'json',
        secret: SECRET,
      },
    }));
  });
  afterEach(async () => {
    await gitea.api('DELETE', `/orgs/acme/hooks/${hook}`);
    await killWorkerProcesses();
    await gitea.clear();
    await rm(folder, { recursive: true, force: true });
  });

  const queue = (): string => settings['HOLDFAST_TASK_QUEUE'] ?? '';

  async function startRunner(more: Partial<RunnerInput> = {}): Promise<WorkflowHandle> {
    const input: RunnerInput = {
      ciServer: 'gitea',
      organization: 'acme',
      labels: [queue()],
      intervals: SHORT_INTERVALS,
      ...more,
    };
    return await client.workflow.start(RUNNER_WORKFLOW, {
      workflowId: `runner-${queue()}`,
      taskQueue: queue(),
      args: [input],
    });
  }

  const reaches = async (runner: WorkflowHandle, phase: string): Promise<RunnerStatus> =>
    await untilSeen(
      `the phase ${phase}`,
      async () => await runner.query(statusQuery),
      (status) => status.phase === phase,
    );

  const phasesOf = async (runner: WorkflowHandle): Promise<{ result: RunnerResult; phases: string[] }> => {
    const result = (await runner.result()) as RunnerResult;
    return { result, phases: result.phases.map(({ phase }) => phase) };
  }; // prettier-ignore

  /** A job that runs until `finish`. */
  async function heldJob(): Promise<{ job: GiteaJobState; finish: () => Promise<void> }> {
    const end = join(folder, 'end');
    const script = `echo begun; while [ -d ${folder} ] && [ ! -e ${end} ]; do sleep 0.1; done; echo finished`;
    const job = await gitea.queueJob(REPOSITORY, [queue()], script);
    return { job, finish: async () => await writeFile(end, '') };
  }

  test('its worker killed while it is busy: another goes on, and the job is not touched', async () => {
    const first = startWorkerProcess(settings);
    await first.started();
    const runner = await startRunner();
    await reaches(runner, 'Idle');
    const { job, finish } = await heldJob();
    await reaches(runner, 'Busy');
    first.kill('SIGKILL');
    await first.ended;
    await startWorkerProcess(settings).started();
    await finish();
    expect((await phasesOf(runner)).result.outcome).toBe('succeeded');
    expect(await gitea.job(REPOSITORY, job.id)).toMatchObject({ conclusion: 'success' });
    expect(await gitea.jobLog(REPOSITORY, job.id)).toMatch(/^\S+ finished$/m);
    expect(await gitea.runners()).toEqual([]);
  });

  test('a set by webhook, its receiver down for half of the jobs: all run once, and nothing is left', async () => {
    const worker = startWorkerProcess(settings);
    await worker.started();
    const input: RunnerSetInput = {
      name: queue(),
      minIdle: 0,
      max: 4,
      scaleDownDelay: '1s',
      recreationGuard: '2s',
      queueCheck: '10s',
      template: {
        ciServer: 'gitea',
        organization: 'acme',
        labels: [queue()],
        intervals: SHORT_INTERVALS,
      },
      intervals: SHORT_SET_INTERVALS,
    };
    const set = await client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(queue()),
      taskQueue: queue(),
      args: [input],
    });
    const jobs: GiteaJobState[] = [];
    const more = async (): Promise<void> => {
      for (let n = 0; n < JOBS / 2; n++) jobs.push(await gitea.queueJob(REPOSITORY, [queue()]));
    };
    await more();
    for (const { id } of jobs) await gitea.waitForJob(REPOSITORY, id, 'completed');
    // Gitea repeats no delivery: that of an end is lost if the receiver goes before it.
    await until(
      'the set to have their ends',
      async () =>
        (await querySetStatus(client, set.workflowId)).jobs.completedTotal === jobs.length,
    );
    worker.kill('SIGKILL');
    await worker.ended;
    await more();
    await startWorkerProcess(settings).started();
    for (const { id } of jobs)
      expect(await gitea.waitForJob(REPOSITORY, id, 'completed')).toMatchObject({
        conclusion: 'success',
      });
    await until(
      'the set to be at rest',
      async () => (await querySetStatus(client, set.workflowId)).runners.length === 0,
    );
    expect((await querySetStatus(client, set.workflowId)).jobs).toMatchObject({
      queued: 0,
      running: 0,
      completedTotal: JOBS,
    });
    expect(await gitea.runners()).toEqual([]);
    await set.terminate();
  });
});
