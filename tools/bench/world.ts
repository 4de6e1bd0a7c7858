/** Environment of benchmarks: the lab's components, simulator, KWOK agent, workers and client. */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CoreV1Api } from '@kubernetes/client-node';
import { Client, Connection } from '@temporalio/client';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { installationSelector } from '../../activities/compute/kubernetes/metadata.ts';
import { down, status, up, type TemporalServer } from '../lab/lab.ts';
import type { SimulatorClient } from '../simulator/client.ts';
import { CpuAccount, type CpuSpent } from './cpuAccount.ts';
import { interruption } from './interruption.ts';
import { createNamespace } from './namespace.ts';
import { KwokAgentProcess } from './processes/kwokAgentProcess.ts';
import type { PodTiming } from './processes/kwokAgentProtocol.ts';
import { SimulatorProcess } from './processes/simulatorProcess.ts';
import { WorkerProcess } from './processes/workerProcess.ts';

/** Options of {@link withBenchEnvironment}. */
export interface WorldOptions {
  /** Folder of the lab's data and logs. */
  readonly stateDir: string;
  /** Whether to keep the components running at the end. */
  readonly keep: boolean;
  readonly progress: (line: string) => void;
  /** Whether to measure a worker that has just started (tools/bench/warmUp.ts). */
  readonly cold: boolean;
  /** Number of workers on the task queue, for benchmarks that support several. */
  readonly workers: number;
  /** Kind of Temporal server. */
  readonly temporal: TemporalServer;
  /** Folder for CPU profiles of the worker. */
  readonly cpuProfileDir?: string;
}

/** Environment that a benchmark runs in. */
export interface BenchEnvironment {
  readonly client: Client;
  readonly taskQueue: string;
  readonly simulator: SimulatorClient;
  readonly agent: KwokAgentProcess;
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
  readonly progress: (line: string) => void;
  readonly cold: boolean;
  /** Opens an account of the CPU time of all components, this process and the newest workers. */
  cpuAccount(): Promise<CpuAccount>;
  /** Measures the CPU time of all components while they are idle. */
  idleCpu(): Promise<CpuSpent>;
  /** Registers a function to call at the end of the benchmark, before components stop. */
  atEnd(close: () => Promise<unknown>): void;
  /** Starts a worker on the task queue. It is ready when `ready()` resolves. */
  startWorker(): WorkerProcess;
  /** Starts the number of workers in the options, and waits until they are ready. */
  startWorkers(): Promise<WorkerProcess[]>;
}

/** Secret of the webhook. */
export const WEBHOOK_SECRET = 'bench';

/**
 * Timing of the simulated pods, unless a benchmark sets another. The runners of the systems that
 * Holdfast is compared with needed the same 0.3 s from the start of the pod to the registration.
 */
export const DEFAULT_TIMING: PodTiming = { startupMs: 300, deletionMs: 0 };

/** Duration of the measurement of idle components (ms). */
const IDLE_MS = 5_000;

/** Starts all components, runs the benchmark, and stops the components in every case. */
export async function withBenchEnvironment<T>(
  options: WorldOptions,
  run: (world: BenchEnvironment) => Promise<T>,
): Promise<T> {
  const { stateDir, keep, cold, temporal: server, progress } = options;
  const closers: (() => Promise<unknown>)[] = [];
  const interrupted = interruption();
  try {
    return await Promise.race([interrupted, bringUpAndRun()]);
  } catch (error) {
    // Report now: a retry in the background may end the process while components are closed.
    progress(`failed: ${String(error)}`);
    throw error;
  } finally {
    for (const close of closers)
      await close().catch((error: unknown) => progress(`cleaning up: ${String(error)}`));
  }

  async function bringUpAndRun(): Promise<T> {
    progress(`starting Temporal (${server}), etcd, the API server and KWOK in ${stateDir}`);
    const wasUp = Object.values((await status({ stateDir })).components).some(
      ({ state }) => state !== 'down',
    );
    closers.push(async () => {
      if (keep || wasUp)
        progress(`the components keep running: npm run lab -- status --state-dir ${stateDir}`);
      else await down({ stateDir, purge: true, progress });
    });
    const lab = await up({ stateDir, temporal: server, kubernetes: true, nodes: 'kwok', progress });
    if (!lab.temporal || !lab.kubernetes)
      throw new Error('the lab started without Temporal or Kubernetes');
    const { temporal, kubernetes } = lab;

    // Use unique names, so that a lab that keeps running can serve many runs.
    const id = `bench-${randomUUID().slice(0, 8)}`;
    const logs = join(lab.stateDir, 'logs');
    await mkdir(logs, { recursive: true });
    const core = loadKubeConfig({ path: kubernetes.kubeconfig }).makeApiClient(CoreV1Api);
    await createNamespace(core, id);

    const simulator = await SimulatorProcess.start(
      join(lab.stateDir, 'simulator.json'),
      join(logs, 'simulator.log'),
    );
    closers.unshift(async () => await simulator.stop());
    const agent = await KwokAgentProcess.start(
      {
        kubeconfig: kubernetes.kubeconfig,
        namespace: id,
        labelSelector: installationSelector(id),
        simulatorUrl: simulator.client.url,
        timing: DEFAULT_TIMING,
      },
      progress,
    );
    closers.unshift(async () => await agent.stop());
    const connection = await Connection.connect({ address: temporal.address });
    closers.unshift(async () => await connection.close());

    const env = {
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
      HOLDFAST_TASK_QUEUE: id,
      // The lists of a sweep would be part of the measurement.
      HOLDFAST_SWEEP_INTERVAL: 'off',
      HOLDFAST_INSTALLATION: id,
      HOLDFAST_COMPUTE: 'kubernetes',
      HOLDFAST_KUBECONFIG: kubernetes.kubeconfig,
      HOLDFAST_KUBERNETES_NAMESPACE: id,
      // KWOK does not start containers: the agent also simulates the supervisor.
      HOLDFAST_SUPERVISOR_IMAGE: 'supervisor',
      HOLDFAST_RUNNER_COMMAND: 'run.sh',
      HOLDFAST_GITHUB_URL: simulator.client.url,
      HOLDFAST_GITHUB_TOKEN: 'ghp_simulator',
      HOLDFAST_WEBHOOK_SECRET: WEBHOOK_SECRET,
      HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
      HOLDFAST_WEBHOOK_ADDRESS: '127.0.0.1:0',
    };
    const pids = new Map([['simulator', simulator.pid], ['kwokAgent', agent.pid], ['benchmark', process.pid]]); // prettier-ignore
    for (const [name, { pid }] of Object.entries((await status({ stateDir })).components))
      if (pid !== undefined) pids.set(name, pid);
    const startWorker = (name = 'worker'): WorkerProcess => {
      const worker = new WorkerProcess({
        env,
        logFile: join(logs, 'worker.log'),
        ...(options.cpuProfileDir === undefined ? {} : { cpuProfileDir: options.cpuProfileDir }),
      });
      closers.unshift(async () => await worker.stop());
      pids.set(name, worker.pid);
      return worker;
    };
    return await run({
      cpuAccount: async () => await CpuAccount.open(pids),
      client: new Client({ connection, namespace: temporal.namespace }),
      taskQueue: id,
      simulator: simulator.client,
      agent,
      kubeconfig: kubernetes.kubeconfig,
      progress,
      cold,
      async idleCpu() {
        const account = await CpuAccount.open(pids);
        await delay(IDLE_MS);
        return await account.spent();
      },
      atEnd: (close) => void closers.unshift(close),
      startWorker: () => startWorker(),
      startWorkers: async () =>
        await Promise.all(
          Array.from(
            { length: options.workers },
            async (_none, index) =>
              await startWorker(`worker${index === 0 ? '' : index + 1}`).ready(),
          ),
        ),
    });
  }
}
