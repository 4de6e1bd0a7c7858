/** Starts the KWOK agent, and keeps what it tells. */
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

/** How often a long wait says how far it is. */
const TELL_EVERY_MS = 5_000;

/** Times of one runner's steps, in ms since the epoch. A life's first runner only: what is lost and replaced is no benchmark. */
export type Steps = Partial<Record<PodStep['step'], number>>;

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
    child.on('message', (message: AgentMessage) => this.#hear(message));
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

  /** Steps of the runner of that workflow. */
  of(workflowId: string): Steps {
    return this.#steps.get(workflowId) ?? {};
  }

  /** All runners that were seen, by workflow id. */
  all(): ReadonlyMap<string, Steps> {
    return this.#steps;
  }

  /** Forgets what was told so far. */
  startOver(): void {
    this.#steps.clear();
    this.#counts.clear();
  }

  /** How many runners have taken that step. */
  count(step: PodStep['step']): number {
    return this.#counts.get(step) ?? 0;
  }

  /** Told of every step as it is heard. */
  onStep(listener: (step: PodStep) => void): void {
    this.#listeners.add(listener);
  }

  /** Sets the timing of all pods created from now on. */
  setTiming(timing: PodTiming): void {
    this.#child.send({ type: 'timing', timing } satisfies AgentRequest);
  }

  /** Ends the containers of these workflows' runners; resolves when the API server has taken all patches. @returns how many there were */
  async endAll(workflowIds: readonly string[]): Promise<number> {
    this.#allEnded = -1;
    this.#child.send({ type: 'endAll', workflowIds } satisfies AgentRequest);
    await this.until('all containers are ended', () => this.#allEnded >= 0, 120_000);
    return this.#allEnded;
  }

  /** @throws Error when the agent has failed */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** Waits for a condition of what the agent has told. @throws Error after `timeoutMs`, or when the agent fails */
  async until(what: string, holds: () => boolean, timeoutMs: number): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    let toldAt = Date.now();
    while (!holds()) {
      this.check();
      if (Date.now() > deadline)
        throw new Error(
          `waited ${Math.round(timeoutMs / 1000)} s in vain until ${what}: ${this.#tally()}`,
        );
      if (Date.now() - toldAt > TELL_EVERY_MS) {
        this.#progress(`until ${what}: ${this.#tally()}`);
        toldAt = Date.now();
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

  /** How many runners have taken each step. */
  #tally(): string {
    return (
      [...this.#counts].map(([step, count]) => `${step} ${count}`).join(', ') || 'no pod was seen'
    );
  }

  #hear(message: AgentMessage): void {
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
