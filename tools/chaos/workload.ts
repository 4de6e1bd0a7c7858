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
import { choose } from './faults/fault.ts';
import type { PlannedWork, CancelKind } from './schedule.ts';
import { ORGANIZATION, type ChaosEnvironment } from './world.ts';

const REPOSITORY = `${ORGANIZATION}/app`;
/**
 * Short intervals. Those that depend on how late another system may act (`lateCreationWindow`,
 * `idleConfirmation`) have the values of production.
 */
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
/** Time after a stop request within which the runner may still start its job (ms). */
const LATE_START_MS = 5_000;

/** A runner without a set. */
interface StandaloneRunner {
  readonly workflowId: string;
  readonly ephemeral: boolean;
  readonly jobs: readonly number[];
  started: boolean;
  /** Time of the stop request, by the clock of the observer (ms). */
  stopRequestedAt: number | undefined;
  ended: boolean;
}

/**
 * Users who queue jobs, and start and stop runners, by the schedule. Their calls are retried while
 * Temporal is unavailable.
 */
export class Workload {
  readonly #world: ChaosEnvironment;
  readonly #runners: number;
  readonly #standalone: StandaloneRunner[] = [];
  #jobs = 0;
  #rollouts = 0;

  /** @param runners - approximate number of runners */
  constructor(world: ChaosEnvironment, runners: number) {
    this.#world = world;
    this.#runners = runners;
  }

  /** Number of jobs that were queued. */
  get jobs(): number {
    return this.#jobs;
  }

  /** Starts the sets: one of ephemeral runners that follows its jobs, one of static ones. */
  async startSets(): Promise<void> {
    const share = (part: number): number => Math.max(1, Math.ceil(this.#runners * part));
    await this.#startSet('ephemeral', { minIdle: share(0.1), max: share(0.5) });
    await this.#startSet('static', { replicas: share(0.2) });
  }

  /** Performs a planned action. */
  async work(work: PlannedWork): Promise<void> {
    switch (work.kind) {
      case 'job':
        this.#queue(this.#setName(work.set), work.takesMs);
        return;
      case 'runner':
        return await this.#startStandalone(work);
      case 'stopRunner': {
        const runner = choose(
          this.#standalone.filter(
            ({ started, stopRequestedAt, ended }) =>
              started && stopRequestedAt === undefined && !ended,
          ),
          work.pick,
        );
        if (runner !== undefined) await this.#requestStop(runner, work.how);
        return;
      }
      case 'cancelJob': {
        const job = choose(this.#world.observer.openJobs(), work.pick);
        if (job !== undefined) this.#cancel(job);
        return;
      }
      case 'rollout': {
        this.#rollouts += 1;
        const next = {
          ...this.#runnerInput(this.#setName(work.set), work.set === 'ephemeral'),
          env: { ROLLOUT: String(this.#rollouts) },
        };
        await this.#command(work.set, { command: 'setTemplate', template: next });
      }
    }
  }

  /** Stops standalone runners without further jobs, and cancels jobs that no runner will start. */
  async maintain(): Promise<void> {
    const { client, name, observer } = this.#world;
    const running = new Set<string>();
    const open = new Map(observer.openJobs().map((job) => [job.id, job]));
    for await (const { workflowId } of client.workflow.list({ query: runningRunnersQuery(name) }))
      running.add(workflowId);
    for (const runner of this.#standalone.filter(({ started, ended }) => started && !ended)) {
      const jobs = runner.jobs.flatMap((id) => open.get(id) ?? []);
      if (running.has(runner.workflowId)) {
        // An ephemeral runner ends with its job. If its job was cancelled, or lost with an earlier
        // pod, the runner would wait for another one.
        const needsStop =
          !runner.ephemeral ||
          runner.jobs.every(
            (id) => this.#world.simulator.world.jobs.get(id)?.conclusion !== 'success',
          );
        if (jobs.length === 0 && needsStop && runner.stopRequestedAt === undefined)
          await this.#requestStop(runner, 'retire');
        // A runner starts no more jobs after a stop request.
        if (
          runner.stopRequestedAt !== undefined &&
          observer.now() - runner.stopRequestedAt > LATE_START_MS
        )
          this.#cancelQueued(jobs);
      } else if (
        (
          await this.#call(
            async () => await client.workflow.getHandle(runner.workflowId).describe(),
          )
        ).status.name !== 'RUNNING'
      ) {
        runner.ended = true;
        this.#cancelQueued(jobs);
      }
    }
  }

  /** Returns the workflow IDs of the standalone runners that have not ended yet. */
  standaloneRunners(): string[] {
    return this.#standalone.filter(({ ended }) => !ended).map(({ workflowId }) => workflowId);
  }

  /** Returns the status of both sets. */
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

  /** Drains both sets with all their runners. */
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

  /** Starts a command without waiting for its result. Temporal keeps it for the set. */
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
      template: this.#runnerInput(name, kind === 'ephemeral'),
    };
    await this.#start(RUNNER_SET_WORKFLOW, setWorkflowId(name), input);
  }

  #runnerInput(label: string, ephemeral: boolean): RunnerInput {
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

  async #startStandalone({
    ephemeral,
    replaces,
    jobsMs,
  }: Extract<PlannedWork, { kind: 'runner' }>): Promise<void> {
    const label = `${this.#world.name}-${this.#standalone.length + 1}`;
    const workflowId = `runner-${label}`;
    const runner: StandaloneRunner = {
      workflowId,
      ephemeral,
      jobs: jobsMs.map((ms) => this.#queue(label, ms)),
      started: false,
      stopRequestedAt: undefined,
      ended: false,
    };
    this.#standalone.push(runner);
    await this.#start(RUNNER_WORKFLOW, workflowId, {
      ...this.#runnerInput(label, ephemeral),
      onEviction: replaces ? 'replace' : 'fail',
    });
    runner.started = true;
  }

  async #start(type: string, workflowId: string, input: object): Promise<void> {
    const { client, name: taskQueue } = this.#world;
    await this.#call(async () => {
      // If the response to a start was lost, the retry finds the started workflow.
      await client.workflow
        .start(type, { workflowId, taskQueue, args: [input] })
        .catch((error: unknown) => {
          if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        });
    });
  }

  async #requestStop(runner: StandaloneRunner, how: CancelKind): Promise<void> {
    const { workflowId } = runner;
    const handle = this.#world.client.workflow.getHandle(workflowId);
    runner.stopRequestedAt = this.#world.observer.now();
    this.#world.observer.add({ kind: 'stopRequested', workflowId, how });
    await this.#call(async () => {
      const request =
        how === 'plain'
          ? handle.cancel()
          : handle.signal(
              cancelSignal,
              how === 'retire' ? { mode: 'drain', planned: true } : { mode: how },
            );
      // A runner that has already ended needs no request.
      await request.catch((error: unknown) => {
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

  /** Repeats a call until it succeeds, because Temporal may be unavailable. */
  async #call<T>(call: () => Promise<T>): Promise<T> {
    return await pRetry(
      async () => await this.#world.client.withDeadline(Date.now() + CALL_MS, call),
      { retries: 200, minTimeout: RETRY_MS, factor: 1 },
    );
  }
}
