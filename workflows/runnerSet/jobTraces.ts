import { parseTraceparent } from '../../core/domain/traceContext.ts';

/** More are not kept: each is some 80 bytes of what continue-as-new carries, and only runners that are started soon have use for one. */
export const MAX_TRACES = 1_000;

/** Traces of queued jobs for which no runner has been started yet: which runner a job gets is the CI server's choice, so that the oldest has the next one. */
export class JobTraces {
  readonly #byKey: Map<string, string>;

  constructor(carried: readonly (readonly [string, string])[] = []) {
    this.#byKey = new Map(carried);
  }

  carry(): { traces?: readonly (readonly [string, string])[] } {
    return this.#byKey.size === 0 ? {} : { traces: [...this.#byKey] };
  }

  /** Anybody may send a signal: what is no `traceparent` is not kept. */
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

  /** Those of the oldest jobs, for runners that are started now. */
  take(count: number): string[] {
    const taken = [...this.#byKey].slice(0, count);
    for (const [key] of taken) this.#byKey.delete(key);
    return taken.map(([, trace]) => trace);
  }
}
