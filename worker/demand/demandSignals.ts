/** Events on their way to sets: one signal at a time to each set, with everything that came meanwhile. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { demandSignal, type JobEvent } from '../../core/contract/index.ts';

export interface BatchLimits {
  /** Events in one signal. @default 200 */
  readonly maxEvents?: number;
  /** Size of one signal's events as JSON, in characters; one event is never too many. @default 262144 (Temporal warns at 512 KiB) */
  readonly maxSize?: number;
  /** From the begin of one signal to a set to that of the next, in ms. @default 50 */
  readonly pauseMs?: number;
}

/** One signal; the SDK tries again meanwhile. */
const SIGNAL_DEADLINE_MS = 6_000;

interface Waiting {
  readonly event: JobEvent;
  readonly size: number;
  /** Runs something as if whoever has added the event did: in its span. */
  readonly inItsContext: <T>(act: () => T) => T;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Bounds what a burst costs a set: each signal is four events of its history and a task for its worker, and a run of a workflow may get
 * 10,000. A lone event is sent at once; what arrives while a signal is under way, or shortly after, is gathered for the next. Whoever
 * adds an event learns how its own signal ended.
 */
export class DemandSignals {
  readonly #client: () => Client;
  readonly #limits: Required<BatchLimits>;
  /** What waits, by workflow id; an entry without anything waiting has its signal under way, or its pause. */
  readonly #lanes = new Map<string, Waiting[]>();

  /** @param client - the client of now. @throws Error while there is no connection to Temporal */
  constructor(client: () => Client, limits: BatchLimits = {}) {
    this.#client = client;
    this.#limits = { maxEvents: 200, maxSize: 262_144, pauseMs: 50, ...limits };
  }

  /**
   * Resolves when Temporal has the event; with `false` when the set has ended.
   * @param signal - gives up: an event that still waits is then never sent; of one whose signal is under way nobody knows
   * @throws what its signal failed with, or the reason of `signal`
   */
  async send(workflowId: string, event: JobEvent, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const sent = Promise.withResolvers<void>();
    const entry: Waiting = { event, size: JSON.stringify(event).length, inItsContext: AsyncLocalStorage.snapshot(), resolve: sent.resolve, reject: sent.reject };
    const giveUp = (): void => {
      const lane = this.#lanes.get(workflowId);
      const place = lane?.indexOf(entry) ?? -1;
      if (place >= 0) lane?.splice(place, 1);
      sent.reject(signal.reason);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    const lane = this.#lanes.get(workflowId);
    if (lane) lane.push(entry);
    else void this.#run(workflowId, [entry]);
    try {
      await sent.promise;
      return true;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async #run(workflowId: string, lane: Waiting[]): Promise<void> {
    this.#lanes.set(workflowId, lane);
    while (lane.length > 0) {
      const batch = lane.splice(0, this.#fitting(lane));
      const [oldest] = batch;
      if (oldest === undefined) break;
      const pause = delay(this.#limits.pauseMs, undefined, { ref: false });
      try {
        await oldest.inItsContext(async () => await this.#signal(workflowId, batch.map(({ event }) => event)));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
      await pause;
    }
    this.#lanes.delete(workflowId);
  }

  async #signal(workflowId: string, events: JobEvent[]): Promise<void> {
    const client = this.#client();
    await client.withDeadline(Date.now() + SIGNAL_DEADLINE_MS, async () => await client.workflow.getHandle(workflowId).signal(demandSignal, { events, at: Date.now() }));
  }

  /** How many of those that wait longest go together. */
  #fitting(lane: readonly Waiting[]): number {
    let size = lane[0]?.size ?? 0;
    let count = 1;
    while (count < this.#limits.maxEvents && (size += lane[count]?.size ?? Infinity) <= this.#limits.maxSize) count++;
    return count;
  }
}
