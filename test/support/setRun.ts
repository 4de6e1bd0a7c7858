import { randomUUID } from 'node:crypto';
import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import {
  RUNNER_SET_WORKFLOW,
  jobEventsSignal,
  setWorkflowId,
  type JobEvent,
  type RunnerSetInput,
  type RunnerSetStatus,
  type SetCommandResult,
  type SetCommand,
} from '../../core/contract/index.ts';
import { runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import { querySetStatus, queryWholeSetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { isUndelivered } from '../../cli/shared/temporalErrors.ts';
import type { FakeCiServer } from './fakeCiServer.ts';
import type { FakeCompute } from './fakeCompute.ts';
import type { HoldfastWorld } from './holdfastWorld.ts';
import { SHORT_INTERVALS } from './shortIntervals.ts';
import { notifySet } from './setCommands.ts';
import { SETS_PRIORITY_KEY } from '../../core/domain/setPriority.ts';
import { until } from './until.ts';

/** Waits of a set short enough for a test. */
export const SHORT_SET_INTERVALS = {
  relist: '1s',
  initialRetry: '300ms',
  maxRetry: '2s',
  guardCheck: '100ms',
} as const;

interface Stage {
  readonly world: HoldfastWorld;
  readonly compute: FakeCompute;
  readonly ci: FakeCiServer;
}

/** A set under test. {@link SetRun.tend} starts its pods, and the test starts and ends its jobs. */
export class SetRun {
  readonly handle: WorkflowHandle;
  readonly name: string;
  readonly #stage: Stage;
  #jobs = 0;

  private constructor(stage: Stage, name: string, handle: WorkflowHandle) {
    this.#stage = stage;
    this.name = name;
    this.handle = handle;
  }

  static async start(stage: Stage, input: Partial<RunnerSetInput> = {}): Promise<SetRun> {
    const { template, name = `set-${randomUUID().slice(0, 8)}`, ...more } = input;
    const full: RunnerSetInput = {
      name,
      minReady: '0s',
      ...more,
      template: SetRun.template(template),
      intervals: { ...SHORT_SET_INTERVALS, ...input.intervals },
    };
    const handle = await stage.world.client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(name),
      taskQueue: stage.world.taskQueue,
      args: [full],
      priority: { priorityKey: SETS_PRIORITY_KEY },
    });
    return new SetRun(stage, name, handle);
  }

  /** A set that is started outside of this class. */
  static of(stage: Stage, name: string): SetRun {
    return new SetRun(stage, name, stage.world.client.workflow.getHandle(setWorkflowId(name)));
  }

  static template(template: Partial<RunnerSetInput['template']> = {}): RunnerSetInput['template'] {
    return {
      organization: 'acme',
      labels: ['self-hosted', 'linux'],
      ...template,
      intervals: { ...SHORT_INTERVALS, ...template.intervals },
    };
  }

  /**
   * Returns the status as the command does: a run that has just started does not have the query
   * yet.
   */
  async status(): Promise<RunnerSetStatus> {
    let status: RunnerSetStatus | undefined;
    await until('the set to answer', async () => {
      try {
        status = await queryWholeSetStatus(this.#stage.world.client, this.handle.workflowId);
        return true;
      } catch (error) {
        if (isUndelivered(error)) return false;
        throw new Error(`${this.name}: ${await this.#lastTaskFailure()}`, { cause: error });
      }
    });
    return status as RunnerSetStatus;
  }

  /** The last workflow task that failed or timed out, because of which the server may reject a query. */
  async #lastTaskFailure(): Promise<string> {
    const { events } = await this.handle.fetchHistory();
    const failed = events?.findLast(
      (event) =>
        event.workflowTaskFailedEventAttributes || event.workflowTaskTimedOutEventAttributes,
    );
    return `${events?.length} events, last failure ${JSON.stringify(failed)}`;
  }

  /**
   * Waits for a status that meets the condition. Pods start in the meantime, unless the test
   * prevents it.
   */
  async reaches(
    what: string,
    like: (status: RunnerSetStatus) => boolean,
    timeoutMs?: number,
  ): Promise<RunnerSetStatus> {
    let last: RunnerSetStatus | undefined;
    await until(
      `set to reach: ${what}`,
      async () => like((last = await this.status())),
      () => JSON.stringify(last),
      timeoutMs,
    );
    return last as RunnerSetStatus;
  }

  /** Waits for these numbers of runners. Queries the numbers only, because the set may be large. */
  async reachesCounts(
    counts: Partial<RunnerSetStatus['runnerCounts']>,
    timeoutMs: number,
  ): Promise<void> {
    let last: RunnerSetStatus | undefined;
    await until(
      `set to reach: ${JSON.stringify(counts)}`,
      async () => {
        last = await querySetStatus(this.#stage.world.client, this.handle.workflowId, { max: 0 });
        const { runnerCounts } = last;
        return Object.entries(counts).every(
          ([state, count]) => runnerCounts[state as 'idle'] === count,
        );
      },
      () => JSON.stringify(last),
      timeoutMs,
    );
  }

  /** Waits until these numbers of runners are idle and busy, and there are no others. */
  async settles(
    counts: Partial<Record<'idle' | 'busy' | 'starting' | 'draining', number>>,
  ): Promise<RunnerSetStatus> {
    const states = ['idle', 'busy', 'starting', 'draining'] as const;
    return await this.reaches(JSON.stringify(counts), ({ runners }) =>
      states.every(
        (state) => runners.filter((one) => one.state === state).length === (counts[state] ?? 0),
      ),
    );
  }

  /**
   * Starts the containers of all waiting pods. A runner with a token registers when it starts.
   * @returns the number of pods
   */
  bringUp(): number {
    const mine = runnerWorkflowId(this.name, '');
    const waiting = [...this.#stage.compute.pods.values()].filter(
      (pod) => pod.workflowId.startsWith(mine) && pod.startedAt === undefined && !pod.ended,
    );
    for (const { name } of waiting) {
      const { runnerId, runnerName } = this.#stage.compute.secrets.get(name) ?? {};
      if (runnerId === undefined && runnerName !== undefined) this.#stage.ci.connect(runnerName);
      this.#stage.compute.start(name);
    }
    return waiting.length;
  }

  /** Starts pods as they appear until the set is in this steady state. */
  async comesTo(counts: Parameters<SetRun['settles']>[0]): Promise<RunnerSetStatus> {
    const timer = setInterval(() => this.bringUp(), 20);
    try {
      return await this.settles(counts);
    } finally {
      clearInterval(timer);
    }
  }

  podOf(workflowId: string): string {
    const pod = [...this.#stage.compute.pods.values()].find((one) => one.workflowId === workflowId);
    if (pod === undefined) throw new Error(`${workflowId} has no pod`);
    return pod.name;
  }

  event(action: JobEvent['action'], jobId: number, runnerName?: string): JobEvent {
    return {
      action,
      jobId: String(jobId),
      runAttempt: 1,
      runId: '1',
      repository: 'acme/app',
      labels: ['linux'],
      at: Date.now(),
      ...(runnerName === undefined ? {} : { runnerName }),
    };
  }

  /** Lets the set execute a command. @throws WorkflowFailedError if it fails */
  async command(command: SetCommand, request?: string): Promise<SetCommandResult> {
    return await notifySet(this.#stage.world.client, this.name, command, request);
  }

  /**
   * Holds or releases a runner. The set rejects the request if the runner has ended. All other
   * failures are thrown.
   */
  async holdIfThere(runner: string, release = false): Promise<void> {
    await this.command({ command: 'hold', runner, release }).catch((error: unknown) => {
      if (!(error instanceof WorkflowFailedError)) throw error;
    });
  }

  async tell(...events: JobEvent[]): Promise<void> {
    await this.handle.signal(jobEventsSignal, { events });
  }

  async queueJob(): Promise<number> {
    const jobId = ++this.#jobs;
    await this.tell(this.event('queued', jobId));
    return jobId;
  }

  /** Starts a job on a runner, as its pod reports it. The test sends events. */
  startJob(runner: { workflowId: string; runnerName?: string }): void {
    this.#stage.ci.setBusy(runner.runnerName ?? '', true);
    this.#stage.compute.startJob(this.podOf(runner.workflowId));
  }

  /** Ends the job, and with it an ephemeral runner. */
  endJob(runner: { workflowId: string; runnerName?: string }, ephemeral = true): void {
    const { ci, compute } = this.#stage;
    const pod = this.podOf(runner.workflowId);
    ci.setBusy(runner.runnerName ?? '', false);
    compute.endJob(pod);
    if (!ephemeral) return;
    ci.forget(runner.runnerName ?? '');
    compute.end(pod, 0);
  }

  /** Ends the set, and waits until it has. */
  async end(): Promise<RunnerSetStatus> {
    await this.command({ command: 'drain', reason: 'the test is over' });
    const timer = setInterval(() => this.bringUp(), 20);
    try {
      return (await this.handle.result()) as RunnerSetStatus;
    } finally {
      clearInterval(timer);
    }
  }
}
