import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import type { PodTemplate } from '../../core/domain/pod.ts';
import type { LabState } from '../../tools/lab/lab.ts';
import {
  startSimulator,
  type Simulator,
  type SimulatorOptions,
} from '../../tools/simulator/simulator.ts';
import { RUNNER_WORKFLOW, type RunnerInput } from '../../core/contract/index.ts';
import { ClusterRun, SHORT_INTERVALS } from './clusterRun.ts';
import { recordNamespace, type NamespaceRecorder } from './namespaceRecorder.ts';
import { createTestNamespace, type TestNamespace } from './pods.ts';
import { findSecrets } from './secretSearch.ts';
import { actAsShippedWorker } from './shippedRole.ts';
import { terminateAll } from './terminateAll.ts';
import { until } from './until.ts';
import { startWorkerProcess, type WorkerProcess } from './workerProcess.ts';

export interface ClusterWorldOptions {
  /**
   * Whether runners have the supervisor; without it the CI server reports their state. @default
   * true
   */
  readonly supervisor?: boolean;
  /** Whether job events are delivered to the worker. @default true */
  readonly webhook?: boolean;
  /** Credentials in addition to `default`, each with a token of its own. */
  readonly credentials?: readonly string[];
  readonly simulator?: SimulatorOptions;
  /** Program of the worker's process. @default worker/main.ts */
  readonly program?: string;
  /** Settings that override the default ones. */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * Whether container hooks of its runners may create pods for their jobs, as in the manifest for
   * that. @default false
   */
  readonly jobPods?: true;
  /** Whether lost jobs may be rerun. @default false */
  readonly reruns?: true;
  /** Number of workers at the start. @default HOLDFAST_TEST_WORKERS, otherwise 1 */
  readonly workers?: number;
  /** Whether no worker is started yet. */
  readonly withoutWorker?: boolean;
  /**
   * Whether its runners have volume claims, so that workers may read nodes, as in the manifest for
   * that. @default false
   */
  readonly claims?: boolean;
  readonly input?: Partial<RunnerInput>;
  /** The workers' own pod template. @default none */
  readonly template?: PodTemplate;
}

/**
 * Lease of a job (ms). Short, so that the registration of a runner killed with its job is released
 * soon; long enough for pauses of a busy machine.
 */
const LEASE_MS = 20_000;

/** The policy of the pods in these tests: it allows the lab's images, and nodes by its labels. */
export const CLUSTER_POLICY = {
  images: ['holdfast.test/*'],
  nodeSelectors: ['holdfast.test/*'],
} as const;

function writeDocument(folder: string, name: string, content: object): string {
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(content));
  return file;
}

/**
 * The product on real components: Temporal, an API server with a real kubelet, the simulated GitHub
 * at an address that pods reach, and the worker as a process with the permissions of the shipped
 * manifests. Namespace and task queue are its own.
 */
export class ClusterWorld {
  readonly client: Client;
  readonly simulator: Simulator;
  readonly namespace: TestNamespace;
  readonly recorder: NamespaceRecorder;
  readonly taskQueue: string;
  /** Client with an administrator's permissions. */
  readonly kubeconfig: string;
  /** Every worker of this world, oldest first. */
  readonly workers: WorkerProcess[] = [];
  readonly runs: ClusterRun[] = [];
  readonly #options: ClusterWorldOptions;
  readonly #connection: Connection;
  /** Settings of its workers. */
  readonly settings: Record<string, string>;
  /** Secrets in the workers' settings. */
  readonly #secrets: readonly string[];
  /** Folder with the workers' kubeconfig. */
  readonly #folder: string;
  readonly #webhookSecret = randomUUID();

  private constructor(
    parts: Pick<ClusterWorld, 'simulator' | 'namespace' | 'recorder' | 'kubeconfig'> & {
      folder: string;
    },
    connection: Connection,
    address: string,
    tokens: Readonly<Record<string, string>>,
    options: ClusterWorldOptions,
  ) {
    this.#options = options;
    this.#connection = connection;
    this.client = new Client({ connection });
    this.simulator = parts.simulator;
    this.namespace = parts.namespace;
    this.recorder = parts.recorder;
    this.kubeconfig = parts.kubeconfig;
    this.#folder = parts.folder;
    this.taskQueue = this.namespace.name;
    this.#secrets = [...Object.values(tokens), this.#webhookSecret];
    const tokenEnv = (credential: string): string => `TOKEN_OF_${credential.toUpperCase()}`;
    const apiUrl = options.settings?.['HOLDFAST_GITHUB_URL'] ?? this.simulator.url;
    this.settings = {
      TEMPORAL_ADDRESS: address,
      HOLDFAST_TASK_QUEUE: this.taskQueue,
      HOLDFAST_COMPUTE: 'kubernetes',
      HOLDFAST_INSTALLATION: this.namespace.name,
      HOLDFAST_KUBECONFIG: join(parts.folder, 'kubeconfig'),
      HOLDFAST_KUBERNETES_NAMESPACE: this.namespace.name,
      ...(options.jobPods === true ? { HOLDFAST_JOB_POD_NAMESPACES: this.namespace.name } : {}),
      HOLDFAST_RUNNER_IMAGE: 'holdfast.test/runner:1',
      HOLDFAST_RUNNER_COMMAND: JSON.stringify(GITHUB_RUNNER.image.command),
      ...(options.supervisor === false
        ? {}
        : { HOLDFAST_SUPERVISOR_IMAGE: 'holdfast.test/supervisor:1' }),
      HOLDFAST_POD_POLICY_FILE: writeDocument(parts.folder, 'pod-policy.json', CLUSTER_POLICY),
      ...(options.template === undefined
        ? {}
        : {
            HOLDFAST_POD_TEMPLATE_FILE: writeDocument(
              parts.folder,
              'pod-template.json',
              options.template,
            ),
          }),
      HOLDFAST_CREDENTIALS: JSON.stringify(
        Object.fromEntries(
          Object.keys(tokens).map((name) => [
            name,
            {
              type: 'pat',
              tokenEnv: tokenEnv(name),
              apiUrl,
              ...(options.reruns === true ? { reruns: true } : {}),
            },
          ]),
        ),
      ),
      ...Object.fromEntries(Object.entries(tokens).map(([name, token]) => [tokenEnv(name), token])),
      HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
      HOLDFAST_WEBHOOK_ADDRESS: '127.0.0.1:0',
      HOLDFAST_SHUTDOWN_GRACE_TIME: '2s',
      HOLDFAST_SHUTDOWN_FORCE_TIME: '5s',
      HOLDFAST_LOG_LEVEL: 'debug',
      // A scheduled sweep could come at any time. Tests of sweeps start one.
      HOLDFAST_SWEEP_INTERVAL: 'off',
      ...(options.webhook === false ? {} : { HOLDFAST_WEBHOOK_SECRET: this.#webhookSecret }),
      ...options.settings,
    };
  }

  static async open(lab: LabState, options: ClusterWorldOptions = {}): Promise<ClusterWorld> {
    const { kubeconfig = '' } = lab.kubernetes ?? {};
    const { address = '' } = lab.temporal ?? {};
    const tokens = Object.fromEntries(
      ['default', ...(options.credentials ?? [])].map((name) => [
        name,
        `ghp_${randomUUID().replaceAll('-', '')}`,
      ]),
    );
    const simulator = await startSimulator({
      host: lab.hostAddress ?? '127.0.0.1',
      leaseMs: LEASE_MS,
      ...options.simulator,
      tokens: Object.entries(tokens).map(([name, token]) => ({ name, token })),
    });
    const namespace = await createTestNamespace(kubeconfig, `e2e-${randomUUID().slice(0, 6)}`);
    const account = await actAsShippedWorker(
      { ...namespace, namespace: namespace.name },
      { nodes: options.claims === true, jobPods: options.jobPods === true },
    );
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-world-'));
    await writeFile(join(folder, 'kubeconfig'), account.exportConfig(), { mode: 0o600 });
    const recorder = await recordNamespace(namespace.kubeConfig, namespace.core, namespace.name);
    const connection = await Connection.connect({ address });
    const world = new ClusterWorld(
      { simulator, namespace, recorder, kubeconfig, folder },
      connection,
      address,
      tokens,
      options,
    );
    const { workers = Number(process.env['HOLDFAST_TEST_WORKERS'] ?? 1) } = options;
    if (options.withoutWorker !== true)
      for (let started = 0; started < workers; started++) await world.startWorker();
    return world;
  }

  /** Starts one more worker and waits until it is ready; job events go to it from now on. */
  async startWorker(settings: Readonly<Record<string, string>> = {}): Promise<WorkerProcess> {
    const worker = startWorkerProcess(
      { ...this.settings, ...settings },
      this.#options.program === undefined ? undefined : [this.#options.program],
    );
    this.workers.push(worker);
    await worker.started();
    if (this.#options.webhook !== false)
      this.simulator.setWebhook({ url: worker.webhook().href, secret: this.#webhookSecret });
    return worker;
  }

  /** The worker started last. */
  get worker(): WorkerProcess {
    const worker = this.workers.at(-1);
    if (worker === undefined) throw new Error('this world has no worker yet');
    return worker;
  }

  /**
   * Starts a runner in an organization of its own, unless it is a command, so that its jobs, faults
   * and requests can be identified.
   */
  async start(name: string, input: Partial<RunnerInput> = {}): Promise<ClusterRun> {
    const key = `${name}-${randomUUID().slice(0, 6)}`;
    const { intervals: mine, ...more } = this.#options.input ?? {};
    const scope = input.ciServer === 'none' ? {} : { organization: key };
    const full: RunnerInput = {
      ...scope,
      ...more,
      ...input,
      intervals: { ...SHORT_INTERVALS, ...mine, ...input.intervals },
    };
    const handle = await this.client.workflow.start(RUNNER_WORKFLOW, {
      workflowId: `runner-${key}`,
      taskQueue: this.taskQueue,
      args: [full],
    });
    const run = new ClusterRun(this, key, handle);
    this.runs.push(run);
    return run;
  }

  /** Returns what all workflows of this world have left. Empty if all is well. */
  async leftovers(): Promise<string[]> {
    const { core, name: namespace } = this.namespace;
    const [pods, secrets] = await Promise.all([
      core.listNamespacedPod({ namespace }),
      core.listNamespacedSecret({ namespace }),
    ]);
    const left = [
      ...pods.items.map(({ metadata }) => `pod ${metadata?.name}`),
      ...secrets.items.map(({ metadata }) => `Secret ${metadata?.name}`),
      ...this.simulator
        .runners()
        .map(
          (runner) =>
            `registration ${runner.name} (${runner.status}${runner.busy ? ', busy' : ''})`,
        ),
    ];
    for await (const { workflowId } of this.client.workflow.list({
      query: `TaskQueue = '${this.taskQueue}' AND CloseTime IS NULL`,
    }))
      left.push(`workflow ${workflowId}`);
    return left;
  }

  /** Checks that nothing is left. Repeated, because visibility is eventually consistent. */
  async expectNothingLeft(): Promise<void> {
    let left: string[] = [];
    await until(
      'nothing to be left',
      async () => (left = await this.leftovers()).length === 0,
      () => left.join(', '),
    );
  }

  /**
   * Returns where the CI server's token, the webhook's secret, a JIT config or a registration token
   * can be read in plain text. Empty if all is well.
   * @param more - other texts to search, by name
   */
  async secretsInClear(more?: Readonly<Record<string, string>>): Promise<string[]> {
    return await findSecrets(this, this.#secrets, more);
  }

  async close(): Promise<void> {
    for (const worker of this.workers) worker.kill('SIGKILL');
    await Promise.all(this.workers.map(async (worker) => await worker.ended));
    await terminateAll(this.client, this.taskQueue);
    await this.recorder.stop();
    await this.simulator.stop();
    await this.#connection.close();
    await this.namespace.remove();
    await rm(this.#folder, { recursive: true });
  }
}
