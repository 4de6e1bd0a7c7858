/** How spans get out of workflows: what the Temporal SDK's own OpenTelemetry interceptors have in headers, and a sink. */
import type { Sinks } from '@temporalio/workflow';

/** Header of starts, signals, updates and activities that carries the trace context, as JSON `{"traceparent": "…"}`. */
export const TRACE_HEADER = '_tracer-data';

/** A span of a workflow that is over. Times in ms since the epoch, by the workflow's clock. */
export interface CompletedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Why it failed; absent: it did not. */
  readonly failure?: string;
}

/** Each worker has it, whether it exports spans or not: a life that is traced may come to any. */
export interface TraceSinks extends Sinks {
  holdfastSpans: { ended(span: CompletedSpan): void };
}
