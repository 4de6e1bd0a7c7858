import { RandomIdGenerator, type IdGenerator } from '@opentelemetry/sdk-trace-base';

/** Generates random IDs. The trace ID of a span without a parent may be given. */
export class TraceIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #given: string | undefined;

  /**
   * Starts a span in a trace.
   * @param traceId - trace of the span that `start` starts.
   * @default a random one
   */
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
