/** What the demo plays on: Temporal with its UI, a CI server, and workers as real processes. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { OPEN_FILTER } from '../core/domain/workflowStatus.ts';
import type { GiteaAccess } from '../tools/lab/options.ts';
import type { DemoCiServer, WebhookTarget } from './ciServers/demoCiServer.ts';
import type { Target } from './target.ts';

const READY_TIMEOUT_MS = 60_000;
const CLI = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../cli/main.ts' : '../cli/main.js', import.meta.url),
);

export interface DemoEnvironmentOptions {
  readonly stateDir: string;
  readonly target: Target;
  /** Gitea to play on. @default a simulated GitHub */
  readonly gitea?: GiteaAccess | undefined;
  readonly temporalAddress: string;
  readonly taskQueue: string;
}

/** A set-up demo. `close` ends all that it started. */
export class DemoEnvironment {
  readonly client: Client;
  readonly ciServer: DemoCiServer;
  readonly target: Target;
  readonly taskQueue: string;
  readonly #options: DemoEnvironmentOptions;
  readonly #connection: Connection;
  readonly #port: number;
  readonly #webhookPort: number;
  readonly #webhookSecret: string;
  #worker: ChildProcess | undefined;
  #workers = 0;

  private constructor(
    options: DemoEnvironmentOptions,
    parts: {
      connection: Connection;
      ciServer: DemoCiServer;
      port: number;
      webhookPort: number;
      webhookSecret: string;
    },
  ) {
    this.#options = options;
    this.target = options.target;
    this.taskQueue = options.taskQueue;
    this.#connection = parts.connection;
    this.client = new Client({ connection: parts.connection });
    this.ciServer = parts.ciServer;
    this.#port = parts.port;
    this.#webhookPort = parts.webhookPort;
    this.#webhookSecret = parts.webhookSecret;
  }

  static async set(options: DemoEnvironmentOptions): Promise<DemoEnvironment> {
    const port = await freePort();
    const webhookPort = await freePort();
    const secret = randomBytes(20).toString('hex');
    const webhook = { port: webhookPort, secret };
    const ciServer = await startCiServer(options, webhook);
    const connection = await Connection.connect({ address: options.temporalAddress });
    return new DemoEnvironment(options, {
      connection,
      port,
      webhookPort,
      webhookSecret: secret,
      ciServer,
    });
  }

  /** Number of workers started so far. */
  get workers(): number {
    return this.#workers;
  }

  /** Starts a worker as its own process and waits until it is ready. */
  async startWorker(): Promise<void> {
    const { stateDir, target, temporalAddress, taskQueue } = this.#options;
    await mkdir(stateDir, { recursive: true });
    const logFile = join(stateDir, `worker-${++this.#workers}.log`);
    const log = await open(logFile, 'w');
    const { PATH = '', HOME = '' } = process.env;
    this.#worker = spawn(process.execPath, [CLI, 'worker'], {
      stdio: ['ignore', log.fd, log.fd],
      env: {
        PATH,
        HOME,
        TEMPORAL_ADDRESS: temporalAddress,
        HOLDFAST_TASK_QUEUE: taskQueue,
        HOLDFAST_HTTP_ADDRESS: `127.0.0.1:${this.#port}`,
        HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${this.#webhookPort}`,
        HOLDFAST_WEBHOOK_SECRET: this.#webhookSecret,
        HOLDFAST_SHUTDOWN_GRACE_TIME: '5s',
        HOLDFAST_SHUTDOWN_FORCE_TIME: '10s',
        ...target.workerEnv,
        ...this.ciServer.workerEnv,
      },
    });
    await log.close();
    await this.#ready(this.#worker, logFile);
  }

  async #ready(worker: ChildProcess, logFile: string): Promise<void> {
    for (const deadline = Date.now() + READY_TIMEOUT_MS; Date.now() < deadline; await delay(100)) {
      if (worker.exitCode !== null)
        throw new Error(`the worker ended with status ${worker.exitCode}; its log: ${logFile}`);
      const ready = await fetch(`http://127.0.0.1:${this.#port}/readyz`).then(
        (response) => response.ok,
        () => false,
      );
      if (ready) return;
    }
    throw new Error(
      `the worker was not ready within ${READY_TIMEOUT_MS / 1_000} s; its log: ${logFile}`,
    );
  }

  /** kill -9: nothing is handed back, nobody is told. */
  async killWorker(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined || worker.exitCode !== null || worker.signalCode !== null) return;
    worker.kill(signal);
    await once(worker, 'exit');
  }

  /** Workflows of this demo that still run. */
  async runningWorkflows(): Promise<string[]> {
    const ids: string[] = [];
    for await (const { workflowId } of this.client.workflow.list({
      query: `TaskQueue = '${this.taskQueue}' AND ${OPEN_FILTER}`,
    }))
      ids.push(workflowId);
    return ids;
  }

  async close(): Promise<void> {
    await this.killWorker('SIGTERM');
    await this.ciServer.close();
    await this.#connection.close();
    await this.target.close();
  }
}

async function startCiServer(
  { gitea, target }: DemoEnvironmentOptions,
  webhook: WebhookTarget,
): Promise<DemoCiServer> {
  if (gitea !== undefined) {
    const { giteaServer } = await import('./ciServers/giteaServer.ts');
    return await giteaServer(gitea, webhook);
  }
  const { simulatedGitHub } = await import('./ciServers/simulatedGitHub.ts');
  return await simulatedGitHub({ ...target.simulator, port: await freePort() }, webhook);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
