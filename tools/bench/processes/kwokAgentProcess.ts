/** Starts the KWOK agent, and records the steps that it reports. */
import { fork, type ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cleanEnvironment, end, track } from './child.ts';
import type {
  AgentMessage,
  AgentRequest,
  KwokAgentOptions,
  PodStep,
  PodTiming,
} from './kwokAgentProtocol.ts';

const MAIN = fileURLToPath(new URL('./kwokAgent.ts', import.meta.url));

/** Interval between progress reports of a wait (ms). */
const PROGRESS_INTERVAL_MS = 5_000;

/** Times of the steps of a workflow's first runner (ms since the epoch). */
export type Steps = Partial<Record<PodStep['step'], number>>;

/** The KWOK agent as a child process. */
export class KwokAgentProcess {
  readonly #child: ChildProcess;
  readonly #progress: (line: string) => void;
  readonly #steps = new Map<string, Steps>();
  readonly #counts = new Map<PodStep['step'], number>();
  readonly #listeners = new Set<(step: PodStep) => void>();
  #failure: Error | undefined;
  #ready = false;
  #allEnded = 0;

  private constructor(child: ChildProcess, progress: (line: string) => void) {
    this.#child = child;
    this.#progress = progress;
    child.on('message', (message: AgentMessage) => this.#onMessage(message));
    child.once('exit', (code, signal) => {
      this.#failure ??= new Error(`the KWOK agent ended (${code ?? signal})`);
    });
  }

  static async start(
    options: KwokAgentOptions,
    progress: (line: string) => void,
  ): Promise<KwokAgentProcess> {
    const child = track(
      fork(MAIN, [JSON.stringify(options)], {
        env: cleanEnvironment(/^$/),
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      }),
    );
    const agent = new KwokAgentProcess(child, progress);
    await agent.until('the KWOK agent is ready', () => agent.#ready, 30_000);
    return agent;
  }

  /** Returns the steps of the runner of a workflow. */
  of(workflowId: string): Steps {
    return this.#steps.get(workflowId) ?? {};
  }

  /** Returns the steps of all runners by workflow ID. */
  all(): ReadonlyMap<string, Steps> {
    return this.#steps;
  }

  /** Discards all recorded steps. */
  startOver(): void {
    this.#steps.clear();
    this.#counts.clear();
  }

  /** Returns the number of runners that have reached a step. */
  count(step: PodStep['step']): number {
    return this.#counts.get(step) ?? 0;
  }

  /** Registers a listener for every step. */
  onStep(listener: (step: PodStep) => void): void {
    this.#listeners.add(listener);
  }

  /** Sets the timing of pods that are created from now on. */
  setTiming(timing: PodTiming): void {
    this.#child.send({ type: 'timing', timing } satisfies AgentRequest);
  }

  /**
   * Ends the containers of these workflows' runners. Resolves when the API server has accepted all
   * patches.
   * @returns the number of containers
   */
  async endAll(workflowIds: readonly string[]): Promise<number> {
    this.#allEnded = -1;
    this.#child.send({ type: 'endAll', workflowIds } satisfies AgentRequest);
    await this.until('all containers are ended', () => this.#allEnded >= 0, 120_000);
    return this.#allEnded;
  }

  /** @throws Error if the agent has failed */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /**
   * Waits for a condition of the recorded steps.
   * @throws Error after `timeoutMs`, or if the agent fails
   */
  async until(what: string, holds: () => boolean, timeoutMs: number): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    let reportedAt = Date.now();
    while (!holds()) {
      this.check();
      if (Date.now() > deadline)
        throw new Error(
          `waited ${Math.round(timeoutMs / 1000)} s without success until ${what}: ${this.#formatCounts()}`,
        );
      if (Date.now() - reportedAt > PROGRESS_INTERVAL_MS) {
        this.#progress(`until ${what}: ${this.#formatCounts()}`);
        reportedAt = Date.now();
      }
      await delay(10);
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async stop(): Promise<void> {
    await end(this.#child, 'SIGTERM');
  }

  /** Formats the number of runners that have reached each step. */
  #formatCounts(): string {
    return (
      [...this.#counts].map(([step, count]) => `${step} ${count}`).join(', ') || 'no pod was seen'
    );
  }

  #onMessage(message: AgentMessage): void {
    if (message.type === 'ready') this.#ready = true;
    else if (message.type === 'failed')
      this.#failure ??= new Error(`the KWOK agent failed: ${message.message}`);
    else if (message.type === 'allEnded') this.#allEnded = message.count;
    else {
      const steps = this.#steps.get(message.workflowId) ?? {};
      if (steps[message.step] === undefined) {
        steps[message.step] = message.at;
        this.#counts.set(message.step, this.count(message.step) + 1);
      }
      this.#steps.set(message.workflowId, steps);
      for (const listener of this.#listeners) listener(message);
    }
  }
}
