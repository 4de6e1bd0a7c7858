/**
 * Sends job events to sets, with one signal to a set at a time. Events that arrive meanwhile share
 * the next signal.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { isNonRetryable } from '../../activities/shared/grpcStatus.ts';
import {
  SetBacklogError,
  SLOW_MAX_EVENTS,
  SLOW_PAUSE_MS,
  SignalPaces,
  type SignalPace,
} from '../../activities/runnerSet/signalPace.ts';
import { jobEventsSignal, type JobEvent } from '../../core/contract/index.ts';

/** Limits of the batches of job events. */
export interface BatchLimits {
  /**
   * Maximum events per signal.
   * @default 200
   */
  readonly maxEvents?: number;
  /**
   * Maximum size of the events of one signal as JSON (characters). A single event may exceed it.
   * Temporal warns at 512 KiB.
   * @default 262144
   */
  readonly maxSize?: number;
  /**
   * Minimum time between the starts of two signals to a set (ms).
   * @default 50
   */
  readonly pauseMs?: number;
  /**
   * Time to wait after a failed signal to the same set (ms).
   * @default 1000
   */
  readonly retryPauseMs?: number;
  /**
   * Time since its arrival during which an event is retried in the background, after its caller was
   * answered with a failure (ms).
   * @default 60000
   */
  readonly backgroundRetryMs?: number;
  /**
   * Maximum events retried in the background, for all sets together.
   * @default 10000
   */
  readonly maxBackgroundRetries?: number;
}

/** Deadline of one signal, the retries of the SDK included (ms). */
const SIGNAL_DEADLINE_MS = 6_000;

interface Waiting {
  readonly event: JobEvent;
  readonly size: number;
  readonly since: number;
  /** Whether the caller that added the event has received its failure. */
  lingers: boolean;
  /** Runs a function in the span of the caller that added the event. */
  readonly inItsContext: <T>(act: () => T) => T;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Limits what a burst of events costs a set: each signal is four events of its history and a
 * workflow task, and a run accepts 10,000 signals. A single event is sent immediately. Events that
 * arrive while a signal is in flight, or shortly afterwards, share the next one. A caller that adds
 * an event gets the result of its own signal. A set that does not answer gets a signal every two
 * seconds, and none shortly before Temporal's limit.
 *
 * An event that fails for a temporary reason is retried for a while, until the process ends. GitHub
 * redelivers a rejected delivery only on request of an App
 * (https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries), and sets
 * tolerate repetitions.
 */
export class JobEventBatcher {
  readonly #client: () => Client;
  readonly #limits: Required<BatchLimits>;
  /** Waiting events by workflow ID. An entry without events has a signal in flight, or a pause. */
  readonly #lanes = new Map<string, Waiting[]>();
  readonly #paces = new SignalPaces();
  #lingering = 0;
  #closed = false;

  /**
   * Creates the batcher.
   * @param client - returns the current client, or throws if there is no connection to Temporal
   */
  constructor(client: () => Client, limits: BatchLimits = {}) {
    this.#client = client;
    this.#limits = {
      maxEvents: 200,
      maxSize: 262_144,
      pauseMs: 50,
      retryPauseMs: 1_000,
      backgroundRetryMs: 60_000,
      maxBackgroundRetries: 10_000,
      ...limits,
    };
  }

  /**
   * Sends an event with the next signal to the set. Resolves when Temporal has accepted it.
   * @param signal - ends the wait; the event is still retried in the background
   * @returns `false` if the set has ended
   * @throws the error of the signal, or the reason of `signal`
   */
  async send(workflowId: string, event: JobEvent, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const sent = Promise.withResolvers<void>();
    const entry: Waiting = {
      event,
      size: JSON.stringify(event).length,
      since: performance.now(),
      lingers: false,
      inItsContext: AsyncLocalStorage.snapshot(),
      resolve: sent.resolve,
      reject: sent.reject,
    };
    const giveUp = (): void => {
      const lane = this.#lanes.get(workflowId);
      const place = lane?.indexOf(entry) ?? -1;
      if (place >= 0 && !this.#keepRetrying(entry)) lane?.splice(place, 1);
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

  /** Ends the retries in the background. */
  close(): void {
    this.#closed = true;
  }

  async #run(workflowId: string, lane: Waiting[]): Promise<void> {
    this.#lanes.set(workflowId, lane);
    while (lane.length > 0) {
      const pace = this.#paces.isCheckDue(workflowId) ? await this.#check(workflowId) : 'normal';
      const slow = pace !== 'normal';
      const batch = lane.splice(0, this.#batchSize(lane, slow ? SLOW_MAX_EVENTS : undefined));
      const [oldest] = batch;
      if (oldest === undefined) break;
      let pause = delay(slow ? SLOW_PAUSE_MS : this.#limits.pauseMs, undefined, { ref: false });
      try {
        if (pace === 'refuse')
          throw new SetBacklogError(
            `${workflowId}: does not answer, so no more events are sent; find the reason with "temporal workflow describe --workflow-id ${workflowId}"`,
          );
        await oldest.inItsContext(
          async () =>
            await this.#signal(
              workflowId,
              batch.map(({ event }) => event),
            ),
        );
        for (const entry of batch) this.#stopRetrying(entry).resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
        const again = isNonRetryable(error)
          ? []
          : batch.filter((entry) => this.#keepRetrying(entry));
        for (const entry of batch) if (!again.includes(entry)) this.#stopRetrying(entry);
        lane.unshift(...again);
        if (again.length > 0) pause = delay(this.#limits.retryPauseMs, undefined, { ref: false });
      }
      await pause;
    }
    this.#lanes.delete(workflowId);
  }

  async #check(workflowId: string): Promise<SignalPace> {
    try {
      const client = this.#client();
      return await client.withDeadline(
        Date.now() + SIGNAL_DEADLINE_MS,
        async () => await this.#paces.check(client, workflowId),
      );
    } catch {
      return 'normal'; // there is no connection: the signal reports the error
    }
  }

  /** Returns whether the event may be retried. */
  #keepRetrying(entry: Waiting): boolean {
    if (this.#closed || performance.now() - entry.since > this.#limits.backgroundRetryMs)
      return false;
    if (entry.lingers) return true;
    if (this.#lingering >= this.#limits.maxBackgroundRetries) return false;
    entry.lingers = true;
    this.#lingering++;
    return true;
  }

  #stopRetrying(entry: Waiting): Waiting {
    if (entry.lingers) this.#lingering--;
    entry.lingers = false;
    return entry;
  }

  async #signal(workflowId: string, events: JobEvent[]): Promise<void> {
    const client = this.#client();
    await client.withDeadline(
      Date.now() + SIGNAL_DEADLINE_MS,
      async () =>
        await client.workflow
          .getHandle(workflowId)
          .signal(jobEventsSignal, { events, at: Date.now() }),
    );
  }

  /** Returns the number of the oldest events that are sent together. */
  #batchSize(lane: readonly Waiting[], maxEvents = this.#limits.maxEvents): number {
    let size = lane[0]?.size ?? 0;
    let count = 1;
    while (count < maxEvents && (size += lane[count]?.size ?? Infinity) <= this.#limits.maxSize)
      count++;
    return count;
  }
}
