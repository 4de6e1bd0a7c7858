/** Delays the signals about jobs to the runners of sets. */
import type { RunnerJobEvent } from '../../core/contract/index.ts';
import { isLaterState, jobKey, ciJobStateOf } from '../../core/domain/ciJobState.ts';

/**
 * Delay of a signal (ms). Shorter than that of the pod's own busy state, which it replaces
 * (activities/watcher/podStateNotifier.ts).
 */
export const HELD_MS = 5_000;
/**
 * Maximum number of delayed signals, enough for a thousand deliveries per second. Further ones are
 * sent immediately.
 */
const MAX_HELD = 5_000;

interface DelayedSignal {
  event: RunnerJobEvent;
  readonly send: () => Promise<void>;
  readonly timer: NodeJS.Timeout;
}

/**
 * Delays job events for runners. A set that has the event needs nothing more, and for its runner
 * the event is a hint, mostly the name of its job. Each signal costs a workflow task of the runner,
 * so it is delayed: for a short job only the end is sent, and no signal for a runner that has ended
 * by then. Delayed signals are lost with this process, which does no harm.
 */
export class DelayedRunnerSignals {
  readonly #send: (runnerName: string, event: RunnerJobEvent) => Promise<unknown>;
  readonly #onFailure: (error: unknown) => void;
  readonly #delayMs: number;
  /** Delayed signals by runner and job. */
  readonly #held = new Map<string, DelayedSignal>();

  /**
   * Creates the queue of delayed signals.
   * @param send - sends one signal
   * @param onFailure - called with the error of each failed signal
   * @param delayMs - delay of a signal (ms).
   * @default 5000
   */
  constructor(
    send: (runnerName: string, event: RunnerJobEvent) => Promise<unknown>,
    onFailure: (error: unknown) => void,
    delayMs: number = HELD_MS,
  ) {
    this.#send = send;
    this.#onFailure = onFailure;
    this.#delayMs = delayMs;
  }

  schedule(runnerName: string, event: RunnerJobEvent): void {
    const key = `${runnerName} ${jobKey({ jobId: event.jobId, runAttempt: event.runAttempt ?? 1 })}`;
    const waiting = this.#held.get(key);
    if (waiting !== undefined) {
      if (isLaterState(ciJobStateOf(event), ciJobStateOf(waiting.event))) waiting.event = event;
      return;
    }
    const send = async (): Promise<void> => {
      this.#held.delete(key);
      try {
        await this.#send(runnerName, held.event);
      } catch (error) {
        this.#onFailure(error);
      }
    };
    const held: DelayedSignal = {
      event,
      send,
      timer: setTimeout(() => void send(), this.#held.size < MAX_HELD ? this.#delayMs : 0),
    };
    this.#held.set(key, held);
  }

  /** Sends all delayed signals now. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.#held.values()].map(async ({ send, timer }) => {
        clearTimeout(timer);
        await send();
      }),
    );
  }
}
