import { POD_CONDITIONS, conditionDueAtMs } from '../../core/domain/podConditions.ts';
import type { PodView } from '../../core/domain/pod.ts';

/** What time alone brings: an image problem that persists, a termination that is overdue, a new runner that stays not ready. One timer per pod. */
export class PodTimers {
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** Calls `due` when something about the pod will be true that is not yet, if it does not change before. */
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

  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }
}
