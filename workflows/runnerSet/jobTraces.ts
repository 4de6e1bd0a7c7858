import { parseTraceparent } from '../../core/domain/traceContext.ts';

/**
 * Maximum number of traces. Each adds about 80 bytes to the state that continue-as-new carries
 * over, and is useful only for runners that are started soon.
 */
export const MAX_TRACES = 1_000;

/**
 * Traces of queued jobs for which no runner has been started yet. The CI server chooses the runner
 * of a job, so the next runner gets the oldest trace.
 */
export class JobTraces {
  readonly #byKey: Map<string, string>;

  constructor(carried: readonly (readonly [string, string])[] = []) {
    this.#byKey = new Map(carried);
  }

  carry(): { traces?: readonly (readonly [string, string])[] } {
    return this.#byKey.size === 0 ? {} : { traces: [...this.#byKey] };
  }

  /**
   * Stores the trace of a job. Anyone may send a signal, so an invalid `traceparent` is ignored.
   */
  set(key: string, trace: string): void {
    if (this.#byKey.size < MAX_TRACES && parseTraceparent(trace) !== undefined)
      this.#byKey.set(key, trace);
  }

  get size(): number {
    return this.#byKey.size;
  }

  clear(): void {
    this.#byKey.clear();
  }

  delete(key: string): void {
    this.#byKey.delete(key);
  }

  /** Removes and returns the traces of the oldest jobs, for runners that are started now. */
  take(count: number): string[] {
    const taken = [...this.#byKey].slice(0, count);
    for (const [key] of taken) this.#byKey.delete(key);
    return taken.map(([, trace]) => trace);
  }
}
