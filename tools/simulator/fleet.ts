import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelMessage, RunnerMessage } from './runner/wire.ts';
import { SimulatedRunner, type FleetLink, type SimulatedRunnerHooks } from './simulatedRunner.ts';

const RECONNECT_MS = 200;

/**
 * Hundreds or thousands of runners in one process, for benchmarks. They use the runner protocol; a
 * job is a timer (`sleepMs`). All messages come in one stream, instead of a long poll for each
 * runner.
 */
export class Fleet {
  readonly #url: string;
  readonly #runners = new Map<string, SimulatedRunner>();
  /**
   * Messages of sessions whose id is not known yet: they arrived before the response with the id.
   */
  readonly #early = new Map<string, RunnerMessage[]>();
  readonly #closed = new AbortController();
  readonly #link: FleetLink;
  #channel: Promise<string>;
  #announce: (channel: string) => void = () => undefined;

  /** @param url where the simulator listens */
  constructor(url: string) {
    this.#url = url.replace(/\/$/, '');
    setMaxListeners(0, this.#closed.signal); // every request of every runner listens
    this.#channel = this.#nextChannel();
    this.#link = {
      url: this.#url,
      closed: this.#closed.signal,
      channel: () => this.#channel,
      attach: (sessionId, runner) => {
        this.#runners.set(sessionId, runner);
        for (const message of this.#early.get(sessionId) ?? []) runner.receive(message);
        this.#early.delete(sessionId);
      },
      detach: (sessionId) => void this.#runners.delete(sessionId),
    };
    void this.#listen();
  }

  /**
   * Starts one runner.
   * @param env - environment of a runner process: ACTIONS_RUNNER_INPUT_JITCONFIG, or RUNNER_TOKEN
   * with RUNNER_URL and others
   */
  start(
    env: Readonly<Record<string, string | undefined>>,
    hooks: SimulatedRunnerHooks = {},
  ): SimulatedRunner {
    return new SimulatedRunner(this.#link, env, hooks);
  }

  /** How many runners have an open session. */
  get size(): number {
    return this.#runners.size;
  }

  /** All fall silent at once, as if their machine had lost its power. */
  close(): void {
    this.#closed.abort();
    for (const runner of this.#runners.values()) runner.kill();
  }

  #nextChannel(): Promise<string> {
    return new Promise((resolve) => {
      this.#announce = resolve;
    });
  }

  async #listen(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      try {
        const response = await fetch(`${this.#url}/_runner/channel`, {
          signal: this.#closed.signal,
        });
        if (response.body) await this.#read(response.body);
      } catch {
        // The server is unreachable, or the fleet was closed: the loop handles both.
      }
      if (this.#closed.signal.aborted) return;
      this.#channel = this.#nextChannel();
      this.#early.clear();
      const orphans = [...this.#runners.values()];
      this.#runners.clear();
      for (const runner of orphans) void runner.reconnect();
      await sleep(RECONNECT_MS);
    }
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines)
        this.#receive(JSON.parse(line) as { channel: string } | ChannelMessage);
    }
  }

  #receive(line: { channel: string } | ChannelMessage): void {
    if ('channel' in line) this.#announce(line.channel);
    else {
      const runner = this.#runners.get(line.sessionId);
      if (runner) runner.receive(line.message);
      else
        this.#early.set(line.sessionId, [...(this.#early.get(line.sessionId) ?? []), line.message]);
    }
  }
}
