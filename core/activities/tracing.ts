/**
 * Interface for spans of workflows: the header of the Temporal SDK's OpenTelemetry interceptors,
 * and a sink.
 */
import type { Sinks } from '@temporalio/workflow';

/**
 * Header of starts, signals, updates and activities with the trace context, as JSON
 * `{"traceparent": "…"}`.
 */
export const TRACE_HEADER = '_tracer-data';

/** Completed span of a workflow. Times are in ms since the epoch, by the workflow's clock. */
export interface CompletedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Error message of a failed span. Absent: it succeeded. */
  readonly failure?: string;
}

/**
 * Sinks for spans. Every worker provides them, whether or not it exports spans, because any worker
 * may run a traced workflow.
 */
export interface TraceSinks extends Sinks {
  holdfastSpans: { ended(span: CompletedSpan): void };
}
