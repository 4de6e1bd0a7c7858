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
   * Maximum time that an event that may wait does so for others, to share their signal (ms).
   * @default 1000
   */
  readonly lazyMs?: number;
  /**
   * Maximum events that wait for others, for all sets together.
   * @default 200
   */
  readonly maxLazy?: number;
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
  /** Whether it may wait for others. */
  readonly mayWait: boolean;
  readonly size: number;
  readonly since: number;
  /** Whether the caller that added the event has received its failure. */
  lingers: boolean;
  /** Runs a function in the span of the caller that added the event. */
  readonly inItsContext: <T>(act: () => T) => T;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Events on their way to one set. A lane without events has a signal in flight, or a pause. */
interface Lane {
  readonly waiting: Waiting[];
  /** Ends the wait for further events. */
  hurry: () => void;
}

/**
 * Limits what events cost a set: each signal is four events of its history and a workflow task, and
 * a run accepts 10,000 signals. An event is sent immediately, unless it may wait: then it shares
 * the signal of the next one, or is sent after a second. Events that arrive while a signal is in
 * flight, or shortly afterwards, share the next one. A caller that adds an event gets the result of
 * its own signal. A set that does not answer gets a signal every two seconds, and none shortly
 * before Temporal's limit.
 *
 * An event that fails for a temporary reason is retried for a while, until the process ends. GitHub
 * redelivers a rejected delivery only on request of an App
 * (https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries), and sets
 * tolerate repetitions.
 */
export class JobEventBatcher {
  readonly #client: () => Client;
  readonly #limits: Required<BatchLimits>;
  /** By workflow ID. */
  readonly #lanes = new Map<string, Lane>();
  readonly #paces = new SignalPaces();
  #lingering = 0;
  #lazy = 0;
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
      lazyMs: 1_000,
      maxLazy: 200,
      retryPauseMs: 1_000,
      backgroundRetryMs: 60_000,
      maxBackgroundRetries: 10_000,
      ...limits,
    };
  }

  /**
   * Sends an event with the next signal to the set. Resolves when Temporal has accepted it.
   * @param signal - ends the wait; the event is still retried in the background
   * @param mayWait - whether the set does nothing at once in response to the event
   * @returns `false` if the set has ended
   * @throws the error of the signal, or the reason of `signal`
   */
  async send(
    workflowId: string,
    event: JobEvent,
    signal: AbortSignal,
    { mayWait = false }: { readonly mayWait?: boolean } = {},
  ): Promise<boolean> {
    signal.throwIfAborted();
    const sent = Promise.withResolvers<void>();
    const entry: Waiting = {
      event,
      mayWait: mayWait && !this.#closed && this.#lazy < this.#limits.maxLazy,
      size: JSON.stringify(event).length,
      since: performance.now(),
      lingers: false,
      inItsContext: AsyncLocalStorage.snapshot(),
      resolve: sent.resolve,
      reject: sent.reject,
    };
    const giveUp = (): void => {
      const lane = this.#lanes.get(workflowId);
      const place = lane?.waiting.indexOf(entry) ?? -1;
      if (place >= 0 && !this.#keepRetrying(entry)) lane?.waiting.splice(place, 1);
      sent.reject(signal.reason);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    if (entry.mayWait) this.#lazy++;
    this.#add(workflowId, entry);
    try {
      await sent.promise;
      return true;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    } finally {
      if (entry.mayWait) this.#lazy--;
      signal.removeEventListener('abort', giveUp);
    }
  }

  /** Ends the waits for further events. Failed events are not retried any more. */
  close(): void {
    this.#closed = true;
    for (const { hurry } of this.#lanes.values()) hurry();
  }

  #add(workflowId: string, entry: Waiting): void {
    const lane = this.#lanes.get(workflowId);
    if (lane === undefined) {
      const fresh: Lane = { waiting: [entry], hurry: () => undefined };
      this.#lanes.set(workflowId, fresh);
      return void this.#run(workflowId, fresh);
    }
    lane.waiting.push(entry);
    if (!entry.mayWait) lane.hurry();
  }

  /** Returns the time for which all events of the lane may still wait for others (ms). */
  #mayWaitMs({ waiting }: Lane): number {
    const [oldest] = waiting;
    if (oldest === undefined || this.#closed || waiting.some(({ mayWait }) => !mayWait)) return 0;
    return oldest.since + this.#limits.lazyMs - performance.now();
  }

  /** Waits for the time, or until an event is there that must not wait. */
  async #untilDue(lane: Lane, waitMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      lane.hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    lane.hurry = () => undefined;
  }

  async #run(workflowId: string, lane: Lane): Promise<void> {
    const { waiting } = lane;
    while (waiting.length > 0) {
      const waitMs = this.#mayWaitMs(lane);
      if (waitMs > 0) await this.#untilDue(lane, waitMs);
      const pace = this.#paces.isCheckDue(workflowId) ? await this.#check(workflowId) : 'normal';
      const slow = pace !== 'normal';
      const batch = waiting.splice(0, this.#batchSize(waiting, slow ? SLOW_MAX_EVENTS : undefined));
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
        waiting.unshift(...again);
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
