import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import {
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
  setWorkflowId,
  statusQuery,
  type RunnerInput,
  type RunnerSetInput,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import type { LabState } from '../../tools/lab/lab.ts';
import { freePort } from '../../tools/lab/ports.ts';
import { Gitea, type GiteaJobState } from './gitea.ts';
import { GITEA_RUNNER_SCRIPT, pathWithGiteaRunner } from './giteaRunner.ts';
import { SHORT_SET_INTERVALS } from './setRun.ts';
import { SHORT_INTERVALS } from './shortIntervals.ts';
import { until } from './until.ts';
import {
  killWorkerProcesses,
  processSettings,
  startWorkerProcess,
  type WorkerProcess,
} from './workerProcess.ts';

const REPOSITORY = 'acme/app';
const SECRET = 'webhook secret';
const QUERY_MS = 5_000;

/** Runners of a real Gitea as processes of this machine, and the settings of their worker. */
export class GiteaWorld {
  readonly gitea: Gitea;
  readonly client: Client;
  /** Task queue of the worker, and label of its runners. */
  readonly queue: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly #connection: Connection;
  readonly #folder: string;
  readonly #hooks: number[] = [];

  private constructor(
    parts: Pick<GiteaWorld, 'gitea' | 'queue' | 'settings'> & { connection: Connection },
    folder: string,
  ) {
    this.gitea = parts.gitea;
    this.queue = parts.queue;
    this.settings = parts.settings;
    this.#connection = parts.connection;
    this.client = new Client({ connection: parts.connection });
    this.#folder = folder;
  }

  static async open(lab: LabState): Promise<GiteaWorld> {
    const gitea = new Gitea(lab.gitea);
    await gitea.clear();
    const address = lab.temporal?.address ?? '';
    const queue = `gitea-${randomUUID().slice(0, 8)}`;
    const port = await freePort();
    const settings = await processSettings({
      TEMPORAL_ADDRESS: address,
      HOLDFAST_TASK_QUEUE: queue,
      // Each runner in its own folder.
      HOLDFAST_RUNNER_COMMAND: JSON.stringify(['sh', '-c', `RUNNER_HOME=$PWD exec ${GITEA_RUNNER_SCRIPT}`]), // prettier-ignore
      HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${port}`,
      HOLDFAST_WEBHOOK_SECRET: SECRET,
      GITEA_TOKEN: gitea.access.token,
      PATH: await pathWithGiteaRunner(),
      ...credentials(gitea.access.url, gitea.access.url),
    });
    const connection = await Connection.connect({ address });
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-gitea-jobs-'));
    const world = new GiteaWorld({ gitea, queue, settings, connection }, folder);
    await world.addHook(`http://127.0.0.1:${port}/webhooks/gitea`);
    return world;
  }

  /** Sends the organization's job events to this address, too. */
  async addHook(url: string): Promise<void> {
    const { id } = await this.gitea.api<{ id: number }>('POST', '/orgs/acme/hooks', {
      type: 'gitea',
      active: true,
      events: ['workflow_job'],
      config: { url, content_type: 'json', secret: SECRET },
    });
    this.#hooks.push(id);
  }

  /** @param url - URL at which the worker reaches Gitea @default Gitea's own */
  startWorker(url = this.gitea.access.url): WorkerProcess {
    return startWorkerProcess({ ...this.settings, ...credentials(url, this.gitea.access.url) });
  }

  async startRunner(more: Partial<RunnerInput> = {}): Promise<WorkflowHandle> {
    const input: RunnerInput = { ...this.#runner(), ...more };
    return await this.client.workflow.start(RUNNER_WORKFLOW, {
      workflowId: `runner-${this.queue}`,
      taskQueue: this.queue,
      args: [input],
    });
  }

  async startSet(more: Partial<RunnerSetInput> = {}): Promise<WorkflowHandle> {
    const input: RunnerSetInput = {
      name: this.queue,
      minIdle: 0,
      scaleDownDelay: '1s',
      recreationGuard: '2s',
      queueCheck: '10s',
      template: this.#runner(),
      intervals: SHORT_SET_INTERVALS,
      ...more,
    };
    return await this.client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(this.queue),
      taskQueue: this.queue,
      args: [input],
    });
  }

  #runner(): RunnerInput {
    return {
      ciServer: 'gitea',
      organization: 'acme',
      labels: [this.queue],
      intervals: SHORT_INTERVALS,
    };
  }

  /** Waits for the phase, also while no worker responds. */
  async reaches(runner: WorkflowHandle, phase: string): Promise<void> {
    const look = async (): Promise<RunnerStatus> =>
      await this.client.withDeadline(
        Date.now() + QUERY_MS,
        async () => await runner.query<RunnerStatus, []>(statusQuery.name),
      );
    await until(`the phase ${phase}`, async () => (await look()).phase === phase);
  }

  /** A job that runs until `finish`. */
  async heldJob(): Promise<{ job: GiteaJobState; finish: () => Promise<void> }> {
    const end = join(this.#folder, randomUUID());
    const script = `echo begun; while [ -d ${this.#folder} ] && [ ! -e ${end} ]; do sleep 0.1; done; echo finished`;
    return { job: await this.queueJob(script), finish: async () => await writeFile(end, '') };
  }

  async queueJob(script?: string): Promise<GiteaJobState> {
    return await this.gitea.queueJob(REPOSITORY, [this.queue], script);
  }

  async job(id: number): Promise<GiteaJobState> {
    return await this.gitea.job(REPOSITORY, id);
  }

  async jobLog(id: number): Promise<string> {
    return await this.gitea.jobLog(REPOSITORY, id);
  }

  async waitForJob(id: number, status: string): Promise<GiteaJobState> {
    return await this.gitea.waitForJob(REPOSITORY, id, status);
  }

  async cancelRun(run: number): Promise<void> {
    await this.gitea.cancelRun(REPOSITORY, run);
  }

  async close(): Promise<void> {
    for (const id of this.#hooks) await this.gitea.api('DELETE', `/orgs/acme/hooks/${id}`);
    await killWorkerProcesses();
    await this.gitea.clear();
    await rm(this.#folder, { recursive: true, force: true });
    await this.#connection.close();
  }
}

/** @param webUrl - URL at which runners connect */
const credentials = (apiUrl: string, webUrl: string): Record<string, string> => ({
  HOLDFAST_CREDENTIALS: JSON.stringify({
    default: {
      server: 'gitea',
      type: 'pat',
      tokenEnv: 'GITEA_TOKEN',
      apiUrl: `${apiUrl}/api/v1`,
      webUrl,
    },
  }),
});
