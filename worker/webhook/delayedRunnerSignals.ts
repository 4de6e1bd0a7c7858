/** Events for the runners of sets, a few seconds later. */
import type { RunnerJobEvent } from '../../core/contract/index.ts';
import { isLaterState, jobKey, ciJobStateOf } from '../../core/domain/ciJobState.ts';

/** As long as the pod's own word that it is busy is held back (activities/watcher/podStateNotifier.ts). */
const HELD_MS = 5_000;
/** A thousand deliveries a second. What is beyond is told at once. */
const MAX_HELD = 5_000;

interface DelayedSignal {
  event: RunnerJobEvent;
  readonly tell: () => Promise<void>;
  readonly timer: NodeJS.Timeout;
}

/**
 * A set that has a job's event needs nothing more of it, and to its runner the event is a hint: for one that runs a single job mostly the name of that job. Each is a
 * signal and a task of the runner's workflow, so it waits for a moment: of a short job only the end is told, and whoever has ended by then has no task of it. What waits is lost with this
 * process, and nothing hangs on it.
 */
export class DelayedRunnerSignals {
  readonly #tell: (runnerName: string, event: RunnerJobEvent) => Promise<unknown>;
  readonly #onFailure: (error: unknown) => void;
  readonly #delayMs: number;
  /** By runner and job. */
  readonly #held = new Map<string, DelayedSignal>();

  /** @param onFailure - told of a hint that could not be told @param delayMs @default 5000 */
  constructor(
    tell: (runnerName: string, event: RunnerJobEvent) => Promise<unknown>,
    onFailure: (error: unknown) => void,
    delayMs: number = HELD_MS,
  ) {
    this.#tell = tell;
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
    const tell = async (): Promise<void> => {
      this.#held.delete(key);
      try {
        await this.#tell(runnerName, held.event);
      } catch (error) {
        this.#onFailure(error);
      }
    };
    const held: DelayedSignal = {
      event,
      tell,
      timer: setTimeout(() => void tell(), this.#held.size < MAX_HELD ? this.#delayMs : 0),
    };
    this.#held.set(key, held);
  }

  /** Tells now what waits. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.#held.values()].map(async ({ tell, timer }) => {
        clearTimeout(timer);
        await tell();
      }),
    );
  }
}
