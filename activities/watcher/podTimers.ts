import { POD_CONDITIONS, conditionDueAtMs } from '../../core/domain/podConditions.ts';
import type { PodView } from '../../core/domain/pod.ts';

/**
 * Timers for pod conditions that become true by the passage of time: a persistent image error, an
 * overdue termination, a new runner that stays not ready. Each pod has one timer.
 */
export class PodTimers {
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /**
   * Calls `due` when the next such condition of the pod becomes true. A change of the pod cancels
   * the timer.
   * @param nowMs - current time (ms since the epoch)
   */
  set(pod: PodView, nowMs: number, due: () => void): void {
    clearTimeout(this.#timers.get(pod.name));
    this.#timers.delete(pod.name);
    const assumedBusyFrom = Date.parse(pod.assumedBusyFrom ?? '');
    const dues = [
      assumedBusyFrom,
      ...POD_CONDITIONS.map((condition) => conditionDueAtMs(condition, pod) ?? 0),
    ].filter((at) => at > nowMs);
    if (dues.length === 0) return;
    const timer = setTimeout(
      () => {
        this.#timers.delete(pod.name);
        due();
      },
      Math.min(...dues) - nowMs + 1,
    );
    this.#timers.set(pod.name, timer);
  }

  /** Cancels all timers. */
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }
}
