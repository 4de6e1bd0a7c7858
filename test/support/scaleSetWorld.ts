/**
 * Runner sets on the simulated GitHub's scale sets: Temporal, workflows and adapter are real; pods
 * in memory run the simulator's runners.
 */
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { createCiServers, parseCredentials } from '../../activities/ciServers/index.ts';
import type { Registration } from '../../activities/ports/ciServer.ts';
import type { ScaleSets } from '../../activities/ports/scaleSets.ts';
import {
  RUNNER_SET_WORKFLOW,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import type { PodRequest, PodView } from '../../core/domain/pod.ts';
import { SETS_PRIORITY_KEY } from '../../core/domain/setPriority.ts';
import { isUndelivered } from '../../cli/shared/temporalErrors.ts';
import type { LabState } from '../../tools/lab/lab.ts';
import { Fleet } from '../../tools/simulator/fleet.ts';
import type { SimulatedRunner } from '../../tools/simulator/simulatedRunner.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import type { SimulatorOptions } from '../../tools/simulator/options.ts';
import { FakeCompute } from './fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from './holdfastWorld.ts';
import { SetRun, SHORT_SET_INTERVALS } from './setRun.ts';
import { until } from './until.ts';

const VARIABLE = 'HOLDFAST_SCALESET_WORLD_TOKEN';
process.env[VARIABLE] = 'ghp_simulator';

/** Pods in memory, each with a runner that really takes its job from the simulator. */
export class RunningCompute extends FakeCompute {
  readonly #runners = new Map<string, SimulatedRunner>();
  readonly #fleet: Fleet;
  /** Pods without a node, with their registrations. */
  readonly #waiting = new Map<string, Registration>();
  #room = Number.POSITIVE_INFINITY;
  /** The longest time that a pod was without a node (ms). */
  longestWaitMs = 0;

  constructor(fleet: Fleet) {
    super();
    this.#fleet = fleet;
  }

  override async createPod(request: PodRequest, registration?: Registration): Promise<PodView> {
    const pod = await super.createPod(request);
    if (registration === undefined || this.#runners.has(pod.name) || this.#waiting.has(pod.name))
      return pod;
    this.#waiting.set(pod.name, registration);
    this.#schedule();
    return this.pods.get(pod.name) ?? pod;
  }

  /** Number of pods that have a node. */
  get placed(): number {
    return [...this.pods.values()].filter(({ node, ended }) => node !== undefined && !ended).length;
  }

  /** Sets how many pods may have a node at a time. */
  setRoom(pods: number): void {
    this.#room = pods;
    this.#schedule();
  }

  override vanish(name: string): void {
    super.vanish(name);
    this.#waiting.delete(name);
    this.#schedule();
  }

  #schedule(): void {
    for (const [name, registration] of this.#waiting) {
      const { createdAt = '' } = this.pods.get(name) ?? {};
      this.longestWaitMs = Math.max(this.longestWaitMs, Date.now() - Date.parse(createdAt));
      if (this.placed < this.#room) {
        this.#waiting.delete(name);
        this.change(name, { scheduled: true, node: 'node-1' });
        this.#run(name, registration);
      } else if (this.pods.get(name)?.unschedulable === undefined)
        this.change(name, { unschedulable: '0/1 nodes are available: 1 Insufficient cpu.' });
    }
  }

  #run(name: string, registration: Registration): void {
    const runner = this.#fleet.start(registration.env, {
      onOnline: () => this.#ifThere(name, () => this.start(name)),
      onJobStart: () => this.#ifThere(name, () => this.startJob(name)),
      onJobEnd: () => this.#ifThere(name, () => this.endJob(name)),
    });
    this.#runners.set(name, runner);
    void runner.ended.then(() => this.#ifThere(name, () => this.end(name, 0)));
  }

  #ifThere(name: string, then: () => void): void {
    if (this.pods.has(name)) then();
  }
}

export interface ScaleSetWorld {
  readonly simulator: Simulator;
  readonly compute: RunningCompute;
  readonly world: HoldfastWorld;
  /** Scale sets as another system creates them. */
  readonly scaleSets: ScaleSets;
  /** Starts a set whose demand comes from a scale set with its name. */
  start(name: string, more?: Partial<RunnerSetInput>): Promise<void>;
  status(name: string): Promise<RunnerSetStatus>;
  close(): Promise<void>;
}

export async function scaleSetWorld(
  lab: LabState,
  options: SimulatorOptions = {},
): Promise<ScaleSetWorld> {
  const simulator = await startSimulator({ scaleSetPollMs: 2_000, ...options });
  const fleet = new Fleet(simulator.url);
  const compute = new RunningCompute(fleet);
  const credential = { type: 'pat', tokenEnv: VARIABLE, apiUrl: simulator.url };
  const ciServers = createCiServers(parseCredentials({ default: credential, other: credential }));
  const world = await holdfastWorld(lab.temporal?.address ?? '', { compute, ciServers });
  const { scaleSets } = ciServers.get('default');
  if (scaleSets === undefined) throw new Error('there are no scale sets');
  return {
    simulator,
    compute,
    world,
    scaleSets,
    async start(name, more = {}) {
      const { template, ...rest } = more;
      const input: RunnerSetInput = {
        name,
        minReady: '0s',
        scaleDownDelay: '0s',
        max: 5,
        ...rest,
        template: SetRun.template({ demand: 'scaleSet', labels: [name], ...template }),
        intervals: { ...SHORT_SET_INTERVALS, ...more.intervals },
      };
      await world.client.workflow.start(RUNNER_SET_WORKFLOW, {
        workflowId: setWorkflowId(name),
        taskQueue: world.taskQueue,
        args: [input],
        priority: { priorityKey: SETS_PRIORITY_KEY },
      });
    },
    async status(name) {
      let status: RunnerSetStatus | undefined;
      await until(`${name} to answer`, async () => {
        try {
          status = await querySetStatus(world.client, setWorkflowId(name));
          return true;
        } catch (error) {
          if (isUndelivered(error)) return false;
          throw error;
        }
      });
      return status as RunnerSetStatus;
    },
    async close() {
      await world.close();
      fleet.close();
      await ciServers.close();
      await simulator.stop();
    },
  };
}
