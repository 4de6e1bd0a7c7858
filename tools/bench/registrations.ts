import { setTimeout as delay } from 'node:timers/promises';
import type { SimulatorClient } from '../simulator/client.ts';

const CHECK_INTERVAL_MS = 100;

/** Records when registrations are removed from the CI server, to a tenth of a second. */
export class RegistrationWatch {
  readonly #simulator: SimulatorClient;
  readonly #firstAbsentAt: { at: number; names: ReadonlySet<string> }[] = [];
  #stopped = false;
  #done: Promise<void>;

  constructor(simulator: SimulatorClient) {
    this.#simulator = simulator;
    this.#done = this.#run();
    this.#done.catch(() => undefined); // thrown by stop()
  }

  /**
   * Returns when the registration of a runner was first absent after `since`.
   * @returns `undefined` if it was never absent
   */
  removedAt(name: string, since: number): number | undefined {
    return this.#firstAbsentAt.find(({ at, names }) => at >= since && !names.has(name))?.at;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #run(): Promise<void> {
    for (;;) {
      const last = this.#stopped;
      const runners = await this.#simulator.runners();
      this.#firstAbsentAt.push({ at: Date.now(), names: new Set(runners.map(({ name }) => name)) });
      if (last) return;
      await delay(CHECK_INTERVAL_MS);
    }
  }
}
