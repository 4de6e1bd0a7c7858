import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { querySetStatus } from '../../../activities/runnerSet/querySetStatus.ts';
import { installationSelector } from '../../../activities/compute/kubernetes/metadata.ts';
import { KwokAgentProcess } from '../../../tools/bench/processes/kwokAgentProcess.ts';
import type { LabState } from '../../../tools/lab/lab.ts';
import type { JobSpec, SimulatedJob } from '../../../tools/simulator/types.ts';
import {
  RUNNER_SET_WORKFLOW,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
  type SetCommand,
} from '../../../core/contract/index.ts';
import { SHORT_INTERVALS } from '../../support/clusterRun.ts';
import { ClusterWorld } from '../../support/clusterWorld.ts';
import { notifySet } from '../../support/setCommands.ts';
import { until } from '../../support/until.ts';
import type { WorkerProcess } from '../../support/workerProcess.ts';

/** The machine may be busy with other things. */
const TIMEOUT_MS = 120_000;
const QUERY_MS = 5_000;
const STARTUP_MS = 100;
/** A runner whose process is held up for so long has not lost its job. */
const LEASE_MS = 60_000;

/**
 * The product with two workers on fake nodes: a process of the benchmarks' plays the runner in each pod, so that there may be many.
 * Jobs are timers, or end when they are cancelled.
 */
export class FleetWorld {
  readonly world: ClusterWorld;
  readonly #agent: KwokAgentProcess;
  #other: WorkerProcess;

  private constructor(world: ClusterWorld, agent: KwokAgentProcess, other: WorkerProcess) {
    this.world = world;
    this.#agent = agent;
    this.#other = other;
  }

  static async open(lab: LabState): Promise<FleetWorld> {
    const world = await ClusterWorld.open(lab, {
      withoutWorker: true,
      // An hour's requests in a few minutes.
      simulator: { seed: 11, leaseMs: LEASE_MS, rateLimit: { limit: 1_000_000 } },
      settings: { HOLDFAST_LOG_LEVEL: 'info' },
    });
    const agent = await KwokAgentProcess.start(
      {
        kubeconfig: world.kubeconfig,
        namespace: world.namespace.name,
        labelSelector: installationSelector(world.namespace.name),
        simulatorUrl: world.simulator.url,
        timing: { startupMs: STARTUP_MS, deletionMs: 0 },
      },
      () => undefined,
    );
    // The one that is started last gets the deliveries.
    const other = await world.startWorker();
    await world.startWorker();
    return new FleetWorld(world, agent, other);
  }

  /** Starts a set whose label is its name; waits are short. */
  async startSet(
    input: Partial<Omit<RunnerSetInput, 'template'>> & {
      template?: Partial<RunnerSetInput['template']>;
    },
  ): Promise<FleetSet> {
    const name = `fleet-${randomUUID().slice(0, 8)}`;
    const full: RunnerSetInput = { name, ...input, template: setTemplate(name, input.template) };
    const handle = await this.world.client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(name),
      taskQueue: this.world.taskQueue,
      args: [full],
    });
    return new FleetSet(this, name, handle);
  }

  /** SIGKILL to one that gets no deliveries, and another in its place. */
  async replaceWorker(): Promise<void> {
    const { simulator } = this.world;
    this.#other.kill('SIGKILL');
    await this.#other.ended;
    const { target } = simulator.world.webhooks;
    this.#other = await this.world.startWorker();
    simulator.setWebhook(target);
  }

  /** Awaits a condition. @throws Error after two minutes, or when what plays the runners has failed */
  async until(
    what: string,
    holds: () => Promise<boolean> | boolean,
    explain?: () => string,
  ): Promise<void> {
    const check = (): Promise<boolean> | boolean => {
      this.#agent.check();
      return holds();
    };
    await until(what, check, explain, TIMEOUT_MS);
    this.#agent.check();
  }

  /** Awaits that nothing of any runner is left. */
  async leavesNothing(): Promise<void> {
    await this.until('nothing to be left', async () => (await this.world.leftovers()).length === 0);
  }

  async close(): Promise<void> {
    await this.world.close();
    await this.#agent.stop();
  }
}

/** A set in a {@link FleetWorld}. */
export class FleetSet {
  readonly #fleet: FleetWorld;
  readonly name: string;
  readonly handle: WorkflowHandle;

  constructor(fleet: FleetWorld, name: string, handle: WorkflowHandle) {
    this.#fleet = fleet;
    this.name = name;
    this.handle = handle;
  }

  /** Queues a job that this set alone covers. */
  queueJob(job: Omit<JobSpec, 'repo' | 'labels'>): SimulatedJob {
    return this.#fleet.world.simulator.queueJob({
      repo: 'acme/app',
      labels: ['self-hosted', this.name],
      ...job,
    });
  }

  /** Its template, with changes. */
  template(changes: Partial<RunnerSetInput['template']>): RunnerSetInput['template'] {
    return setTemplate(this.name, changes);
  }

  async status(): Promise<RunnerSetStatus> {
    return await this.#fleet.world.client.withDeadline(
      Date.now() + QUERY_MS,
      async () => await querySetStatus(this.#fleet.world.client, this.handle.workflowId),
    );
  }

  /** Awaits a status that the condition likes. */
  async reaches(
    what: string,
    like: (status: RunnerSetStatus) => boolean,
    explain: () => string = () => '',
  ): Promise<RunnerSetStatus> {
    let last: RunnerSetStatus | undefined;
    await this.#fleet.until(
      `set to reach: ${what}`,
      async () => like((last = await this.status())),
      () => `${JSON.stringify(last)} ${explain()}`,
    );
    return last as RunnerSetStatus;
  }

  async tell(command: SetCommand): Promise<void> {
    await notifySet(this.#fleet.world.client, this.name, command);
  }

  /** Drains it, and awaits its end. */
  async end(): Promise<RunnerSetStatus> {
    await this.tell({ command: 'drain', reason: 'the test is over' });
    let ended = false;
    const result = this.handle.result() as Promise<RunnerSetStatus>;
    const over = (): void => void (ended = true);
    result.then(over, over);
    await this.#fleet.until(`set ${this.name} to end`, () => ended);
    return await result;
  }
}

function setTemplate(
  name: string,
  changes: Partial<RunnerSetInput['template']> = {},
): RunnerSetInput['template'] {
  return {
    organization: 'acme',
    labels: ['self-hosted', name],
    ...changes,
    intervals: { ...SHORT_INTERVALS, ...changes.intervals },
  };
}
