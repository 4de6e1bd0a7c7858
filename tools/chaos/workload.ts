import { randomUUID } from 'node:crypto';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import pRetry from 'p-retry';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import {
  RUNNER_SET_WORKFLOW, RUNNER_WORKFLOW, SET_COMMAND_WORKFLOW, cancelSignal, setCommandId, setWorkflowId,
  type RunnerInput, type RunnerIntervals, type RunnerSetInput, type RunnerSetStatus, type SetCommand,
} from '../../core/contract/index.ts'; // prettier-ignore
import { runningRunnersQuery } from '../../core/domain/visibility.ts';
import type { SimulatedJob } from '../simulator/types.ts';
import { chosen } from './faults/fault.ts';
import type { PlannedWork, CancelKind } from './schedule.ts';
import { ORGANIZATION, type ChaosEnvironment } from './world.ts';

const REPOSITORY = `${ORGANIZATION}/app`;
/** Short where waits are about nothing but time. What is about how late things may happen (`lateCreationWindow`, `idleConfirmation`) is production's. */
const INTERVALS: RunnerIntervals = {
  busyRetry: '1s',
  busyCheck: '5s',
  absentCheck: '1s',
  credentialsRetry: '1s',
  removalGrace: '20s',
  stopResponseTimeout: '5s',
  listMaxAge: '5s',
};
const SET_WAITS: Partial<RunnerSetInput> = {
  scaleDownDelay: '3s',
  recreationGuard: '10s',
  queueCheck: '5s',
  intervals: { relist: '5s', initialRetry: '300ms', maxRetry: '2s', guardCheck: '2s' },
};
const CALL_MS = 5_000;
const RETRY_MS = 500;
/** How long the job of a runner that was told to go may still be taken by it. */
const GIVE_UP_MS = 5_000;

/** A runner by itself. */
interface Single {
  readonly life: string;
  readonly ephemeral: boolean;
  readonly jobs: readonly number[];
  started: boolean;
  /** When it was told to go, in ms. */
  toldAt: number | undefined;
  over: boolean;
}

/** Those who queue jobs, start runners and tell them to go: as the schedule says, while Temporal may be away. */
export class Workload {
  readonly #world: ChaosEnvironment;
  readonly #runners: number;
  readonly #singles: Single[] = [];
  #jobs = 0;
  #rollouts = 0;

  /** @param runners - how many there shall be about */
  constructor(world: ChaosEnvironment, runners: number) {
    this.#world = world;
    this.#runners = runners;
  }

  /** How many jobs were queued. */
  get jobs(): number {
    return this.#jobs;
  }

  /** Starts the sets: one of ephemeral runners that follows its jobs, one of static ones. */
  async startSets(): Promise<void> {
    const share = (part: number): number => Math.max(1, Math.ceil(this.#runners * part));
    await this.#startSet('ephemeral', { minIdle: share(0.1), max: share(0.5) });
    await this.#startSet('static', { replicas: share(0.2) });
  }

  async work(work: PlannedWork): Promise<void> {
    switch (work.kind) {
      case 'job':
        this.#queue(this.#setName(work.set), work.takesMs);
        return;
      case 'runner':
        return await this.#startSingle(work);
      case 'tell': {
        const single = chosen(
          this.#singles.filter(
            ({ started, toldAt, over }) => started && toldAt === undefined && !over,
          ),
          work.pick,
        );
        if (single !== undefined) await this.#tell(single, work.how);
        return;
      }
      case 'cancelJob': {
        const job = chosen(this.#world.observer.openJobs(), work.pick);
        if (job !== undefined) this.#cancel(job);
        return;
      }
      case 'rollout': {
        this.#rollouts += 1;
        const next = {
          ...this.#runner(this.#setName(work.set), work.set === 'ephemeral'),
          env: { ROLLOUT: String(this.#rollouts) },
        };
        await this.#command(work.set, { command: 'setTemplate', template: next });
      }
    }
  }

  /** What users see to now and then: a runner that has done its work shall go, and a job that nobody will take is called off. */
  async maintain(): Promise<void> {
    const { client, name, observer } = this.#world;
    const running = new Set<string>();
    const open = new Map(observer.openJobs().map((job) => [job.id, job]));
    for await (const { workflowId } of client.workflow.list({ query: runningRunnersQuery(name) }))
      running.add(workflowId);
    for (const single of this.#singles.filter(({ started, over }) => started && !over)) {
      const jobs = single.jobs.flatMap((id) => open.get(id) ?? []);
      if (running.has(single.life)) {
        // An ephemeral runner ends with its job; one whose job was cancelled, or lost with the pod before it, would wait for another.
        const unused =
          !single.ephemeral ||
          single.jobs.every(
            (id) => this.#world.simulator.world.jobs.get(id)?.conclusion !== 'success',
          );
        if (jobs.length === 0 && unused && single.toldAt === undefined)
          await this.#tell(single, 'retire');
        // One that was told to go takes no more jobs.
        if (single.toldAt !== undefined && observer.now() - single.toldAt > GIVE_UP_MS)
          this.#cancelQueued(jobs);
      } else if (
        (await this.#call(async () => await client.workflow.getHandle(single.life).describe()))
          .status.name !== 'RUNNING'
      ) {
        single.over = true;
        this.#cancelQueued(jobs);
      }
    }
  }

  /** The runners by themselves that have not ended yet. */
  standaloneRunners(): string[] {
    return this.#singles.filter(({ over }) => !over).map(({ life }) => life);
  }

  async sets(): Promise<RunnerSetStatus[]> {
    return await Promise.all(
      (['ephemeral', 'static'] as const).map(
        async (kind) =>
          await this.#call(
            async () => await querySetStatus(this.#world.client, this.#set(kind).workflowId),
          ),
      ),
    );
  }

  /** Tells the sets to end with all their runners. */
  async drain(): Promise<void> {
    await Promise.all(
      (['ephemeral', 'static'] as const).map(
        async (kind) => await this.#command(kind, { command: 'drain', reason: 'the run is over' }),
      ),
    );
  }

  #setName(kind: 'ephemeral' | 'static'): string {
    return `${this.#world.name}-${kind === 'ephemeral' ? 'e' : 's'}`;
  }

  #set(
    kind: 'ephemeral' | 'static',
  ): ReturnType<ChaosEnvironment['client']['workflow']['getHandle']> {
    return this.#world.client.workflow.getHandle(setWorkflowId(this.#setName(kind)));
  }

  /** Nobody waits for the answer: Temporal keeps it until the set hears it. */
  async #command(kind: 'ephemeral' | 'static', command: SetCommand): Promise<void> {
    const set = this.#setName(kind);
    await this.#start(SET_COMMAND_WORKFLOW, setCommandId(set, randomUUID()), { set, ...command });
  }

  async #startSet(kind: 'ephemeral' | 'static', scale: Partial<RunnerSetInput>): Promise<void> {
    const name = this.#setName(kind);
    const input: RunnerSetInput = {
      name,
      ...scale,
      ...SET_WAITS,
      template: this.#runner(name, kind === 'ephemeral'),
    };
    await this.#start(RUNNER_SET_WORKFLOW, setWorkflowId(name), input);
  }

  #runner(label: string, ephemeral: boolean): RunnerInput {
    const limits =
      this.#world.nodes === 'kwok'
        ? {}
        : {
            pod: {
              spec: {
                containers: [{ name: 'runner', resources: { limits: { memory: '256Mi' } } }],
              },
            },
          };
    return {
      organization: ORGANIZATION,
      labels: ['self-hosted', label],
      ephemeral,
      intervals: INTERVALS,
      ...limits,
    };
  }

  async #startSingle({
    ephemeral,
    replaces,
    jobsMs,
  }: Extract<PlannedWork, { kind: 'runner' }>): Promise<void> {
    const label = `${this.#world.name}-${this.#singles.length + 1}`;
    const life = `runner-${label}`;
    const single: Single = {
      life,
      ephemeral,
      jobs: jobsMs.map((ms) => this.#queue(label, ms)),
      started: false,
      toldAt: undefined,
      over: false,
    };
    this.#singles.push(single);
    await this.#start(RUNNER_WORKFLOW, life, {
      ...this.#runner(label, ephemeral),
      onEviction: replaces ? 'replace' : 'fail',
    });
    single.started = true;
  }

  async #start(type: string, workflowId: string, input: object): Promise<void> {
    const { client, name: taskQueue } = this.#world;
    await this.#call(async () => {
      // Whether a start arrived whose answer was lost, the next one tells.
      await client.workflow
        .start(type, { workflowId, taskQueue, args: [input] })
        .catch((error: unknown) => {
          if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        });
    });
  }

  async #tell(single: Single, how: CancelKind): Promise<void> {
    const handle = this.#world.client.workflow.getHandle(single.life);
    single.toldAt = this.#world.observer.now();
    this.#world.observer.add({ kind: 'told', life: single.life, how });
    await this.#call(async () => {
      const telling =
        how === 'plain'
          ? handle.cancel()
          : handle.signal(
              cancelSignal,
              how === 'retire' ? { mode: 'drain', planned: true } : { mode: how },
            );
      // One that has ended is what was wanted.
      await telling.catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      });
    });
  }

  #queue(label: string, takesMs: number): number {
    const job = this.#world.simulator.queueJob({
      repo: REPOSITORY,
      labels: ['self-hosted', label],
      sleepMs: takesMs,
    });
    this.#jobs += 1;
    this.#world.observer.follow(job);
    return job.id;
  }

  #cancelQueued(jobs: readonly SimulatedJob[]): void {
    for (const job of jobs.filter(({ status }) => status === 'queued')) this.#cancel(job);
  }

  #cancel({ id }: SimulatedJob): void {
    this.#world.observer.add({ kind: 'job', job: id, step: 'cancelled by its user' });
    this.#world.simulator.cancelJob(id);
  }

  /** Again until it succeeds: users, too, wait for Temporal. */
  async #call<T>(call: () => Promise<T>): Promise<T> {
    return await pRetry(
      async () => await this.#world.client.withDeadline(Date.now() + CALL_MS, call),
      { retries: 200, minTimeout: RETRY_MS, factor: 1 },
    );
  }
}
