/** The five lives that the demo plays, and what must become of each. */
import { setTimeout as delay } from 'node:timers/promises';
import { QueryNotRegisteredError, ServiceError } from '@temporalio/client';
import { isOpen } from '../core/domain/workflowStatus.ts';
import {
  RUNNER_WORKFLOW,
  cancelSignal,
  drainUpdate,
  statusQuery,
  type RunnerInput,
  type RunnerResult,
  type RunnerStatus,
} from '../core/contract/index.ts';
import type { DemoCiServer } from './ciServers/demoCiServer.ts';
import type { DemoEnvironment } from './environment.ts';

/** What a life has come to, for people and for `--json`. */
export interface DemoRunner {
  readonly id: string;
  readonly description: string;
  readonly outcome: string;
  readonly cause?: string;
  readonly phases: { phase: string; at: string }[];
  readonly unregisterAttempts: number;
  readonly replacedBy?: string;
  /** What did not go as told. */
  readonly failure: string[];
}

interface Scenario {
  readonly key: string;
  readonly description: string;
  readonly input?: Partial<RunnerInput>;
  runScenario(act: ScenarioRun, others: readonly ScenarioRun[]): Promise<void>;
  /** What is wrong with how it ended. */
  check(result: RunnerResult, act: ScenarioRun): string[] | Promise<string[]>;
}

const TIMEOUT_MS = 180_000;
/** How long one look at a workflow may take: while no worker runs, nobody answers. */
const CHECK_INTERVAL_MS = 2_000;

/** One runner on the stage. */
export class ScenarioRun {
  readonly id: string;
  readonly scenario: Scenario;
  readonly stage: DemoEnvironment;
  readonly #label: string;
  #job: number | undefined;
  /** Last status seen, for the live table. */
  status: RunnerStatus | undefined;
  result: RunnerResult | undefined;

  readonly #signal: AbortSignal;

  /** @param signal - ends all waiting: the play is over before its end */
  constructor(stage: DemoEnvironment, scenario: Scenario, run: string, signal: AbortSignal) {
    this.stage = stage;
    this.#signal = signal;
    this.scenario = scenario;
    this.#label = `${scenario.key}-${run}`;
    this.id = `runner-demo-${this.#label}`;
  }

  get handle() {
    return this.stage.client.workflow.getHandle(this.id);
  }

  async start(): Promise<void> {
    const input: RunnerInput = {
      organization: 'acme',
      labels: ['self-hosted', this.#label],
      // Production's pace would make a long demo: the CI server is asked more often than it should be.
      intervals: { busyRetry: '2s', onlineCheck: '500ms' },
      ...this.stage.target.runnerInput,
      ...this.stage.ciServer.runnerInput,
      ...this.scenario.input,
    };
    await this.stage.client.workflow.start(RUNNER_WORKFLOW, {
      workflowId: this.id,
      taskQueue: this.stage.taskQueue,
      args: [input],
      staticSummary: this.scenario.description,
    });
  }

  /** Queues a job that only this runner can take. */
  async queueJob(command: string): Promise<void> {
    const { ciServer } = this.stage;
    this.#job = await ciServer.queueJob({ label: this.#label, name: this.scenario.key, command });
  }

  /** Whether its only job has succeeded on this runner, and printed this text. */
  async hasSucceeded(runnerName: string, text: string): Promise<boolean> {
    return await this.stage.ciServer.hasSucceeded(this.#job ?? 0, runnerName, text);
  }

  /** The job runs, as the CI server sees it. */
  async isBusy(): Promise<void> {
    await this.#poll('its job to run', async () =>
      (await this.stage.ciServer.isRunning(this.#job ?? 0)) ? true : undefined,
    );
  }

  async drain(): Promise<void> {
    await this.handle.executeUpdate<{ accepted: true }, [{ reason?: string }]>(drainUpdate.name, {
      args: [{ reason: 'demo: node maintenance' }],
    });
  }

  /** Looks at the workflow; a worker that is down just now is part of the play. */
  async look(): Promise<RunnerStatus | undefined> {
    try {
      this.status = await this.stage.client.withDeadline(
        Date.now() + CHECK_INTERVAL_MS,
        async () => await this.handle.query(statusQuery),
      );
    } catch (error) {
      if (!(error instanceof ServiceError) && !(error instanceof QueryNotRegisteredError))
        throw error;
    }
    return this.status;
  }

  async reaches(what: string, like: (status: RunnerStatus) => boolean): Promise<RunnerStatus> {
    return await this.#poll(what, async () => {
      const status = await this.look();
      return status !== undefined && like(status) ? status : undefined;
    });
  }

  /** The verdict, once there is one. */
  async ends(): Promise<RunnerResult> {
    await this.#poll('its end', async () =>
      isOpen((await this.handle.describe()).status) ? undefined : true,
    );
    return (this.result = (await this.handle.result()) as RunnerResult);
  }

  async #poll<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    for (
      const deadline = Date.now() + TIMEOUT_MS;
      Date.now() < deadline;
      await delay(150, undefined, { signal: this.#signal })
    ) {
      const seen = await look();
      if (seen !== undefined) return seen;
    }
    throw new Error(
      `${this.id}: waited ${TIMEOUT_MS / 1_000} s for ${what}; last seen: ${JSON.stringify(this.status)}`,
    );
  }
}

const outcome = (wanted: string, cause?: string) => (result: RunnerResult) =>
  result.outcome === wanted && result.cause === cause
    ? []
    : [
        `ended ${result.outcome}/${result.cause ?? '-'}, not ${wanted}/${cause ?? '-'}: ${result.message}`,
      ];

const SCENARIOS: readonly Scenario[] = [
  {
    key: 'succeeds',
    description: 'an ephemeral runner whose job succeeds',
    async runScenario(act) {
      await act.queueJob('echo building; sleep 3; echo done');
    },
    check: outcome('succeeded'),
  },
  {
    key: 'drained',
    description: 'a static runner drained while busy: refused (422) until its job ends',
    input: { ephemeral: false },
    async runScenario(act) {
      await act.queueJob('for i in 1 2 3 4 5 6; do echo step $i; sleep 2; done');
      await act.isBusy();
      await act.drain();
    },
    check: (result) => [
      ...outcome('succeeded')(result),
      ...(result.unregisterAttempts > 3
        ? []
        : [`was refused only ${result.unregisterAttempts - 1} times`]),
    ],
  },
  {
    key: 'cancelled',
    description: 'a runner cancelled while busy: unregistered, then stopped gracefully',
    async runScenario(act) {
      await act.queueJob('sleep 600');
      await act.isBusy();
      await act.handle.signal(cancelSignal, { reason: 'demo: cancelled by hand', mode: 'stop' });
    },
    check: outcome('aborted', 'cancelled'),
  },
  {
    key: 'worker-killed',
    description: 'a runner whose worker dies (kill -9) in the middle of its job',
    async runScenario(act, others) {
      await act.queueJob('for i in $(seq 12); do echo step $i; sleep 2; done; echo survived');
      await act.isBusy();
      // The refusals of the drained runner are counted by the worker that met them.
      await Promise.all(
        others
          .filter((other) => other.scenario.key === 'drained')
          .map(async (other) => await other.ends()),
      );
      await act.stage.killWorker();
      await act.stage.startWorker();
    },
    check: async (result, act) => [
      ...outcome('succeeded')(result),
      ...(result.attempt === 1 ? [] : [`needed ${result.attempt} pods`]),
      ...((await act.hasSucceeded(result.runnerName, 'survived'))
        ? []
        : ['its job did not survive']),
    ],
  },
  {
    key: 'vanishes',
    description: 'a runner that vanishes while idle and is replaced under a new name',
    async runScenario(act) {
      const { pod } = await act.reaches(
        'Idle',
        (status) => status.phase === 'Idle' && status.pod !== undefined,
      );
      await act.stage.target.deletePod(pod ?? '');
      await act.reaches(
        'another runner',
        (status) => status.attempt === 2 && status.pod !== undefined,
      );
      await act.queueJob('echo second try; sleep 2');
    },
    check: (result) => [
      ...outcome('succeeded')(result),
      ...(result.replacements.length === 1
        ? []
        : [`was replaced ${result.replacements.length} times`]),
    ],
  },
];

/**
 * Scenarios that are otherwise on Gitea. It does not refuse to remove a busy runner, and it would
 * fail a killed job ten minutes later only.
 */
const ON_GITEA: Readonly<Record<string, Scenario>> = {
  drained: {
    key: 'drained',
    description: 'a runner drained while busy: disabled, and removed when its job has ended',
    async runScenario(act) {
      await act.queueJob('for i in 1 2 3 4 5 6; do echo step $i; sleep 2; done');
      await act.isBusy();
      await act.drain();
    },
    check: outcome('succeeded'),
  },
  cancelled: {
    key: 'cancelled',
    description: 'a runner cancelled while busy: stopped when its job has ended in time',
    input: { stop: { signalTimeout: '60s' } },
    async runScenario(act) {
      await act.queueJob('sleep 10');
      await act.isBusy();
      await act.handle.signal(cancelSignal, { reason: 'demo: cancelled by hand', mode: 'stop' });
    },
    check: outcome('aborted', 'cancelled'),
  },
};

/** Returns the scenarios that are played on a CI server. */
export function scenariosOn(kind: DemoCiServer['kind']): readonly Scenario[] {
  return kind === 'gitea' ? SCENARIOS.map((each) => ON_GITEA[each.key] ?? each) : SCENARIOS;
}

/** Plays one life to its end. */
export async function runScenario(
  act: ScenarioRun,
  _index: number,
  acts: readonly ScenarioRun[],
): Promise<DemoRunner> {
  const { scenario } = act;
  await scenario.runScenario(act, acts);
  const result = await act.ends();
  const replacedBy = result.replacements.at(-1)?.replacedBy;
  return {
    id: act.id,
    description: scenario.description,
    outcome: result.outcome,
    ...(result.cause === undefined ? {} : { cause: result.cause }),
    phases: result.phases,
    unregisterAttempts: result.unregisterAttempts,
    ...(replacedBy === undefined ? {} : { replacedBy }),
    failure: await scenario.check(result, act),
  };
}
