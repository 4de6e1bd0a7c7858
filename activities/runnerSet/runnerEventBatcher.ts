/**
 * Batches events of runners for their sets. Each set gets one signal at a time, with all events
 * that arrived meanwhile.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { getClient, log } from '@temporalio/activity';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import {
  runnerEventsSignal,
  setWorkflowId,
  type TimedRunnerEvent,
} from '../../core/contract/index.ts';
import type { SetNotification } from '../../core/activities/index.ts';
import { SetBacklogError, SLOW_PAUSE_MS, SignalPaces, type SignalPace } from './signalPace.ts';
import { isNonRetryable } from '../shared/grpcStatus.ts';

/** Deadline of one signal, the retries of the client included (ms). */
const SIGNAL_DEADLINE_MS = 6_000;
/** Timeout of the activity that notifies a set (workflows/shared/activityProxies.ts). */
const TIMEOUT_MS = 10_000;
/**
 * Maximum number of events of one set that wait for others, because each may occupy an activity
 * slot of the worker.
 */
const MAX_LAZY = 20;
/** Maximum events per signal. Each is about 300 bytes; Temporal warns at 512 KiB. */
const MAX_EVENTS = 200;

/** Timing of the batches of one set. */
export interface BatchTiming {
  /**
   * Minimum time between the starts of two signals to a set (ms).
   * @default 250
   */
  readonly pauseMs?: number;
  /**
   * Maximum time that an event that is not urgent waits for others, to share a signal (ms).
   * @default 1000
   */
  readonly lazyMs?: number;
}

/** Function with which activities notify sets. */
export type NotifySet = (notification: SetNotification) => Promise<void>;

interface Waiting {
  readonly event: TimedRunnerEvent;
  readonly client: Client;
  /**
   * Completes the call.
   * @param rejection - error with which Temporal rejected the event, if it did
   */
  readonly resolve: (rejection?: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Events of one set that wait to be sent. */
interface Lane {
  readonly waiting: Waiting[];
  /** Whether an urgent event is waiting. */
  hurried: boolean;
  /** Ends the wait for further events. */
  hurry: () => void;
}

/**
 * Limits the cost of a burst for a set. Each signal adds four events to its history and a workflow
 * task, and a run of a workflow may get 10,000 signals. A single event is sent immediately. Events
 * that arrive during a signal or shortly after it share the next one. The caller's promise resolves
 * when Temporal has accepted the signal.
 */
export class RunnerEventBatcher {
  readonly #pace: Required<BatchTiming>;
  /** Lanes by set. A lane exists while it has events or pauses after a signal. */
  readonly #lanes = new Map<string, Lane>();
  readonly #paces = new SignalPaces();
  /**
   * Several callers share a signal, so it must not be cancelled with the activity that started it.
   */
  readonly #outsideOfActivities = AsyncLocalStorage.snapshot();

  constructor(pace: BatchTiming = {}) {
    this.#pace = { pauseMs: 250, lazyMs: 1_000, ...pace };
  }

  /**
   * Notifies a set of an event of one of its runners. Resolves when Temporal has accepted the
   * signal. A set that has ended or rejects the event is not an error, because a running set also
   * lists its runners.
   * @throws the error of the signal if a retry may succeed
   */
  async notify({ set, event, mayWait }: SetNotification): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const entry: Waiting = {
      event: { ...event, at: Date.now() },
      client: getClient(),
      resolve,
      reject,
    };
    const lane = this.#lanes.get(set);
    // A runner that comes online is not urgent, because the set does not start anything in
    // response.
    const lazy = event.kind === 'online' || mayWait === true;
    if (lane === undefined) {
      const fresh: Lane = { waiting: [entry], hurried: !lazy, hurry: () => undefined };
      this.#lanes.set(set, fresh);
      void this.#outsideOfActivities(async () => await this.#run(set, fresh));
    } else {
      lane.waiting.push(entry);
      if (!lazy || lane.waiting.length >= MAX_LAZY) {
        lane.hurried = true;
        lane.hurry();
      }
    }
    const rejection = await promise;
    if (rejection !== undefined)
      log.warn(
        'failed to signal a set about its runner; the next list of the set shows the change',
        {
          set,
          error: rejection,
        },
      );
  }

  async #run(set: string, lane: Lane): Promise<void> {
    while (lane.waiting.length > 0) {
      if (!lane.hurried) await this.#untilHurried(lane);
      dropLate(lane);
      const pace = this.#paces.isCheckDue(setWorkflowId(set))
        ? await this.#check(set, lane)
        : 'normal';
      const batch = lane.waiting.splice(0, MAX_EVENTS);
      const pauseMs = pace === 'normal' ? this.#pace.pauseMs : SLOW_PAUSE_MS;
      const pauses = lane.hurried ? delay(pauseMs, undefined, { ref: false }) : undefined;
      lane.hurried = lane.waiting.length > 0;
      if (pace === 'refuse') rejectAll(batch, set);
      else await send(set, batch);
      await pauses;
    }
    this.#lanes.delete(set);
  }

  async #check(set: string, { waiting: [first] }: Lane): Promise<SignalPace> {
    if (first === undefined) return 'normal';
    return await first.client.withDeadline(
      Date.now() + SIGNAL_DEADLINE_MS,
      async () => await this.#paces.check(first.client, setWorkflowId(set)),
    );
  }

  async #untilHurried(lane: Lane): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#pace.lazyMs);
      lane.hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function rejectAll(batch: readonly Waiting[], set: string): void {
  for (const { reject } of batch)
    reject(
      new SetBacklogError(`${setWorkflowId(set)}: does not answer, so no more events are sent`),
    );
}

/**
 * Drops events whose callers have given up. They send the event again, and it must not precede
 * newer events.
 */
function dropLate({ waiting }: Lane): void {
  const tooLate = Date.now() - TIMEOUT_MS;
  let late = 0;
  while ((waiting[late]?.event.at ?? Number.POSITIVE_INFINITY) < tooLate) late++;
  for (const { reject } of waiting.splice(0, late))
    reject(new Error('the event was not sent to its set in time'));
}

/**
 * Sends a batch. If it is rejected, each event is sent on its own, so that a rejected event does
 * not fail the others.
 */
async function send(set: string, batch: readonly Waiting[]): Promise<void> {
  const [first] = batch;
  if (first === undefined) return;
  try {
    await first.client.withDeadline(
      Date.now() + SIGNAL_DEADLINE_MS,
      async () =>
        await first.client.workflow
          .getHandle(setWorkflowId(set))
          .signal(runnerEventsSignal, { events: batch.map(({ event }) => event) }),
    );
    for (const { resolve } of batch) resolve();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) for (const { resolve } of batch) resolve();
    else if (!isNonRetryable(error)) for (const { reject } of batch) reject(error);
    else if (batch.length > 1) for (const one of batch) await send(set, [one]);
    else first.resolve(error);
  }
}
