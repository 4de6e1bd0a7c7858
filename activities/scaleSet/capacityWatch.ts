import type { Client } from '@temporalio/client';
import { readOrders, type SetOrders } from './setOrders.ts';

/** Interval between reads of the set's orders (ms). */
const INTERVAL_MS = 5_000;
/**
 * Maximum age of the set's orders (ms). A listener that is cut off from Temporal must stop, since
 * another one continues its session.
 */
const MAX_AGE_MS = 15_000;

/** Follows the orders of a set, and interrupts a poll when they change. */
export class CapacityWatch {
  readonly #client: Client;
  readonly #set: string;
  #timer: NodeJS.Timeout | undefined;
  #orders: SetOrders = { kind: 'listen', capacity: 0 };
  #readAt = 0;
  #failure: unknown;
  #interrupt: AbortController | undefined;

  constructor(client: Client, set: string) {
    this.#client = client;
    this.#set = set;
  }

  /** Reads the orders of the set, and repeats that at regular intervals. */
  async start(): Promise<void> {
    await this.#read();
    this.#timer = setInterval(() => void this.#tick(), INTERVAL_MS);
  }

  /**
   * Current orders of the set.
   * @throws the error of the last read if it is too old: a listener that is cut off from Temporal
   * must stop
   */
  get orders(): SetOrders {
    if (performance.now() - this.#readAt > MAX_AGE_MS)
      throw this.#failure ?? new Error(`failed to read the set ${this.#set} in time`);
    return this.#orders;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Runs a call until it is done or the orders of the set change.
   * @returns `undefined` if it was interrupted
   */
  async interruptible<T>(
    signal: AbortSignal,
    call: (interrupted: AbortSignal) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const interrupt = new AbortController();
    this.#interrupt = interrupt;
    try {
      return await call(AbortSignal.any([signal, interrupt.signal]));
    } catch (error) {
      if (interrupt.signal.aborted && !signal.aborted) return undefined;
      throw error;
    } finally {
      this.#interrupt = undefined;
    }
  }

  async #tick(): Promise<void> {
    const before = JSON.stringify(this.#orders);
    try {
      await this.#read();
    } catch (error) {
      this.#failure = error;
    }
    const isOld = performance.now() - this.#readAt > MAX_AGE_MS;
    if (isOld || JSON.stringify(this.#orders) !== before) this.#interrupt?.abort();
  }

  async #read(): Promise<void> {
    const orders = await readOrders(this.#client, this.#set);
    this.#orders = orders;
    this.#failure = undefined;
    this.#readAt = performance.now();
  }
}
