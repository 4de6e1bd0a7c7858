import { randomUUID } from 'node:crypto';
import type { CoreV1Api } from '@kubernetes/client-node';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { LabState } from '../../tools/lab/lab.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { createCiServers, parseCredentials } from '../../activities/ciServers/index.ts';
import { locationLabel, runnerHash } from '../../activities/compute/naming.ts';
import { temporalNamespaceId } from '../../activities/shared/temporalNamespace.ts';
import type { OwnedObjects } from '../../activities/shared/ownedObjects.ts';
import type { CiServer, Registration } from '../../activities/ports/ciServer.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import { sweep, type SweepSources } from '../../activities/sweep/sweep.ts';
import {
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  type RunnerInput,
  type RunnerPhase,
  type SweepInput,
  type SweepMark,
  type SweepReport,
} from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import type { PodRequest, PodView, RunnerIdentity } from '../../core/domain/pod.ts';
import { formatLocation } from '../../core/domain/location.ts';
import { runnerName } from '../../core/domain/runnerName.ts';
import { parseSweepInput } from '../../core/input/sweep.ts';
import type { OwnedKind, OwnedObject } from '../../core/sweep/ownedObject.ts';
import { startKubernetesHarness, type KubernetesHarness } from './kubernetesHarness.ts';
import { terminateAll } from './terminateAll.ts';
import { until } from './until.ts';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});

/** A runner without a worker: its workflow, and the objects that the test creates for it. */
export interface SweptRunner {
  readonly handle: WorkflowHandle;
  readonly identity: RunnerIdentity;
  readonly runnerName: string;
}

/** Limits with which no object is too young, and no list too old. */
const AT_ONCE: SweepInput = { minAge: '0s', listMaxAge: '0s' };

process.env['HOLDFAST_SWEEP_TOKEN'] = 'ghp_sweep';

/**
 * An API server without kubelets, a Temporal server without workers, and the simulated GitHub.
 * Tests create states, and sweep them.
 */
export class SweepWorld {
  readonly harness: KubernetesHarness;
  readonly simulator: Simulator;
  readonly client: Client;
  readonly scope: Scope = { kind: 'organization', name: `acme-${randomUUID().slice(0, 6)}` };
  readonly taskQueue = `sweep-${randomUUID().slice(0, 8)}`;
  /** Task queue of runners' workflows that no worker polls, not even a worker of the test. */
  readonly unpolled = `${this.taskQueue}-lives`;
  readonly place: string;
  readonly log: { fields: object; message: string }[] = [];
  marks: SweepMark[] = [];
  readonly #ciServers: ReturnType<typeof createCiServers>;
  readonly #address: string;
  readonly #queues: string[] = [this.taskQueue, this.unpolled];
  readonly #workers: { worker: Worker; connection: NativeConnection; done: Promise<void> }[] = [];

  private constructor(
    harness: KubernetesHarness,
    simulator: Simulator,
    client: Client,
    address: string,
    place: string,
  ) {
    this.harness = harness;
    this.simulator = simulator;
    this.client = client;
    this.#address = address;
    this.place = place;
    this.#ciServers = createCiServers(
      parseCredentials({
        default: { type: 'pat', tokenEnv: 'HOLDFAST_SWEEP_TOKEN', apiUrl: simulator.url },
      }),
    );
  }

  static async open(lab: LabState): Promise<SweepWorld> {
    const { address = '' } = lab.temporal ?? {};
    const [harness, simulator, connection] = await Promise.all([
      startKubernetesHarness(lab.kubernetes?.kubeconfig ?? ''),
      startSimulator({ tokens: [{ token: 'ghp_sweep', name: 'sweep' }] }),
      Connection.connect({ address }),
    ]);
    return new SweepWorld(
      harness,
      simulator,
      new Client({ connection }),
      address,
      formatLocation(await harness.compute.location()),
    );
  }

  get owned(): OwnedObjects {
    const { ownedObjects } = this.harness.compute;
    if (ownedObjects === undefined) throw new Error('the compute owns nothing');
    return ownedObjects;
  }

  get core(): CoreV1Api {
    return this.harness.core;
  }

  get ciServer(): CiServer {
    return this.#ciServers.get('default');
  }

  /** Starts a workflow that looks like a runner in that phase, on a task queue without a worker. */
  async startRunner({
    phase = 'Idle',
    taskQueue = this.unpolled,
    input = {},
    attempt = 1,
  }: {
    phase?: RunnerPhase;
    taskQueue?: string;
    input?: Partial<RunnerInput>;
    /** Name of the workflow's current runner. */
    attempt?: number;
  } = {}): Promise<SweptRunner> {
    const workflowId = `runner-${randomUUID().slice(0, 8)}`;
    const given = runnerName(workflowId, randomUUID().replaceAll('-', '').slice(0, 10), attempt);
    const handle = await this.client.workflow.start(RUNNER_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [{ organization: this.scope.name, ...input }],
      typedSearchAttributes: [
        { key: SEARCH_ATTRIBUTES.place, value: this.place },
        { key: SEARCH_ATTRIBUTES.phase, value: phase },
        { key: SEARCH_ATTRIBUTES.scope, value: this.scope.name },
        { key: SEARCH_ATTRIBUTES.name, value: given },
      ],
    });
    const identity = {
      workflowId,
      firstRunId: handle.firstExecutionRunId,
      attempt,
      temporalNamespaceId: await temporalNamespaceId(this.client),
    };
    await this.#listed(`WorkflowId = '${workflowId}'`);
    // The hash in its name is known only after the start. The objects of the test have the right
    // one, as those of a real runner.
    return { handle, identity, runnerName: runnerName(workflowId, runnerHash(identity), attempt) };
  }

  /** Returns a runner whose workflow was terminated by hand. */
  async terminated(reason = 'by hand'): Promise<SweptRunner> {
    const runner = await this.startRunner();
    await runner.handle.terminate(reason);
    await this.#listed(
      `WorkflowId = '${runner.identity.workflowId}' AND ExecutionStatus = 'Terminated'`,
    );
    return runner;
  }

  /**
   * Returns a workflow that has completed with a runner's name that contains its own hash, as real
   * ones do.
   */
  async named(): Promise<SweptRunner> {
    const runner = await this.startRunner({ taskQueue: await this.polledQueue() });
    await runner.handle.signal('hadName', runner.runnerName);
    await runner.handle.result();
    await this.#listed(`RunnerName = '${runner.runnerName}' AND ExecutionStatus = 'Completed'`);
    return runner;
  }

  /** Returns a runner whose workflow has completed. */
  async finished(): Promise<SweptRunner> {
    const runner = await this.startRunner({
      taskQueue: await this.polledQueue(),
      input: { name: 'ends' },
    });
    await runner.handle.result();
    await this.#listed(
      `WorkflowId = '${runner.identity.workflowId}' AND ExecutionStatus = 'Completed'`,
    );
    return runner;
  }

  /** Returns a task queue with a worker whose runners do nothing. */
  async polledQueue(): Promise<string> {
    const taskQueue = `${this.taskQueue}-polled-${this.#workers.length}`;
    const connection = await NativeConnection.connect({ address: this.#address });
    const worker = await Worker.create({
      connection,
      taskQueue,
      workflowsPath: new URL('sweptRunners/workflows.ts', import.meta.url).pathname,
    });
    this.#workers.push({ worker, connection, done: worker.run() });
    this.#queues.push(taskQueue);
    await until(
      'the queue to be polled',
      async () =>
        (
          (
            await this.client.workflowService.describeTaskQueue({
              namespace: 'default',
              taskQueue: { name: taskQueue },
              taskQueueType: 1,
            })
          ).pollers ?? []
        ).length > 0,
    );
    return taskQueue;
  }

  /** Registers a runner as a provisioning does. */
  async register(
    name: string,
    labels: readonly string[] = ['self-hosted', locationLabel(this.place)],
  ): Promise<Registration> {
    const registration = await this.ciServer.register({
      scope: this.scope,
      name,
      labels,
      group: 'default',
      ephemeral: true,
      mode: 'jit',
    });
    return { ...registration, at: { scope: this.scope, credential: 'default' } };
  }

  /** Creates registration, Secret and running pod of a runner, as its provisioning does. */
  async provision(
    runner: SweptRunner,
    more: Partial<PodRequest> = {},
    compute: Compute = this.harness.compute,
  ): Promise<{ pod: PodView; registration: Registration }> {
    const registration = await compute.storeRegistrationSecret(
      runner.identity,
      await this.register(runner.runnerName),
    );
    return { pod: await this.run(runner, registration, more, compute), registration };
  }

  /** A running pod. */
  async run(
    runner: Pick<SweptRunner, 'identity'>,
    registration?: Registration,
    more: Partial<PodRequest> = {},
    compute: Compute = this.harness.compute,
  ): Promise<PodView> {
    const pod = await compute.createPod(
      { ...this.harness.request(runner.identity), ...more },
      registration,
    );
    await this.harness.makeRunning(pod);
    return pod;
  }

  async object(kind: OwnedKind, name: string): Promise<OwnedObject | undefined> {
    return (await this.owned.list(kind)).find((object) => object.name === name);
  }

  /** Returns the names of all objects, of any owner. */
  async names(): Promise<{ pods: string[]; secrets: string[]; claims: string[] }> {
    const { namespace } = this.harness;
    const [pods, secrets, claims] = await Promise.all([
      this.core.listNamespacedPod({ namespace }),
      this.core.listNamespacedSecret({ namespace }),
      this.core.listNamespacedPersistentVolumeClaim({ namespace }),
    ]);
    const namesOf = ({ items }: { items: { metadata?: { name?: string } }[] }): string[] =>
      items.map(({ metadata }) => metadata?.name ?? '').sort();
    return { pods: namesOf(pods), secrets: namesOf(secrets), claims: namesOf(claims) };
  }

  async sweep(input: SweepInput = {}, sources: Partial<SweepSources> = {}): Promise<SweepReport> {
    const parsed = parseSweepInput({ ...AT_ONCE, ...input });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
    const logger = {
      info: () => undefined,
      warn: (fields: object, message: string) => void this.log.push({ fields, message }),
    };
    const report = await sweep(
      {
        compute: this.harness.compute,
        ciServers: this.#ciServers,
        client: this.client,
        taskQueue: this.taskQueue,
        logger,
        resources: 'required',
        ...sources,
      },
      parsed.spec,
      this.marks,
    );
    this.marks = report.marks;
    return report;
  }

  async close(): Promise<void> {
    for (const { worker } of this.#workers) worker.shutdown();
    await Promise.all(this.#workers.map(async ({ done }) => await done));
    for (const { connection } of this.#workers) await connection.close();
    for (const queue of this.#queues) await terminateAll(this.client, queue);
    await this.#ciServers.close();
    await this.simulator.stop();
    await this.client.connection.close();
    await this.harness.close();
  }

  async #listed(query: string): Promise<void> {
    await until(
      `a workflow to be listed: ${query}`,
      async () =>
        (
          await this.client.workflow.count(
            `${query} AND ${SEARCH_ATTRIBUTES.place.name} = '${this.place}'`,
          )
        ).count === 1,
    );
  }
}
