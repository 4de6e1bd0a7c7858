import { RandomIdGenerator, type IdGenerator } from '@opentelemetry/sdk-trace-base';

/** Random ids; the trace of a span that has no parent may be given. */
export class TraceIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #given: string | undefined;

  /** @param traceId - of the span that `start` starts; absent: a random one */
  startIn<T>(traceId: string | undefined, start: () => T): T {
    this.#given = traceId;
    try {
      return start();
    } finally {
      this.#given = undefined;
    }
  }

  generateTraceId(): string {
    return this.#given ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#random.generateSpanId();
  }
}
