import type { Client } from '@temporalio/client';
import { readOrders, type SetOrders } from './setOrders.ts';

/** Interval between reads of the set's orders (ms). */
const INTERVAL_MS = 5_000;
/**
 * The same after a change of the orders (ms): a set that finds out how much room the cluster has
 * changes its capacity again a moment later.
 */
const CHANGING_INTERVAL_MS = 1_000;
/** Time after a change for which the shorter interval applies (ms). */
const CHANGING_MS = 15_000;
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
  /** Times of the start of the last read, and of the last read that succeeded. */
  #startedAt = 0;
  #readAt = 0;
  #changedAt = Number.NEGATIVE_INFINITY;
  #isReading = false;
  #failure: unknown;
  #interrupt: AbortController | undefined;

  constructor(client: Client, set: string) {
    this.#client = client;
    this.#set = set;
  }

  /** Reads the orders of the set, and repeats that at regular intervals. */
  async start(): Promise<void> {
    await this.#read();
    this.#timer = setInterval(() => this.#tick(), CHANGING_INTERVAL_MS);
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

  #tick(): void {
    const now = performance.now();
    // A read may hang for long while the process is cut off.
    if (now - this.#readAt > MAX_AGE_MS) this.#interrupt?.abort();
    const isChanging = now - this.#changedAt < CHANGING_MS;
    const isDue = now - this.#startedAt >= (isChanging ? CHANGING_INTERVAL_MS : INTERVAL_MS);
    if (this.#isReading || !isDue) return;
    this.#isReading = true;
    void this.#readAgain().finally(() => (this.#isReading = false));
  }

  async #readAgain(): Promise<void> {
    const before = JSON.stringify(this.#orders);
    try {
      await this.#read();
    } catch (error) {
      this.#failure = error;
    }
    if (JSON.stringify(this.#orders) === before) return;
    this.#changedAt = performance.now();
    this.#interrupt?.abort();
  }

  async #read(): Promise<void> {
    this.#startedAt = performance.now();
    const orders = await readOrders(this.#client, this.#set);
    this.#orders = orders;
    this.#failure = undefined;
    this.#readAt = performance.now();
  }
}
