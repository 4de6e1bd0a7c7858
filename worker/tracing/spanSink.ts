import { SpanKind, SpanStatusCode, TraceFlags, type HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import {
  RUN_ID_ATTR_KEY,
  WORKFLOW_ID_ATTR_KEY,
} from '@temporalio/interceptors-opentelemetry/lib/instrumentation.js';
import type { InjectedSinks } from '@temporalio/worker';
import type { WorkflowInfo } from '@temporalio/workflow';
import type { CompletedSpan, TraceSinks } from '../../core/activities/index.ts';

/** Destination of spans. */
export interface SpanExportTarget {
  /** Receives the spans that have ended. */
  readonly spanProcessor: SpanProcessor;
  /** Resource that the spans describe. */
  readonly resource: Resource;
}

/** Maximum number of ended spans that are remembered. */
const REMEMBERED = 10_000;

/**
 * Exports each span of a workflow once. Replays do not create spans. A task that Temporal rejects,
 * because a signal arrived while the workflow ended, is repeated and creates the same spans again,
 * mostly in the same worker.
 */
export function spanSink({ spanProcessor, resource }: SpanExportTarget): InjectedSinks<TraceSinks> {
  const taken = new Set<string>();
  const take = (info: WorkflowInfo, span: CompletedSpan): void => {
    if (taken.has(span.spanId)) return;
    taken.add(span.spanId);
    spanProcessor.onEnd(readable(span, info, resource));
    if (taken.size <= REMEMBERED) return;
    const [oldest] = taken;
    if (oldest !== undefined) taken.delete(oldest);
  };
  return { holdfastSpans: { ended: { fn: take, callDuringReplay: false } } };
}

/**
 * Builds the span for the exporter. The SDK's own builder adds everything known about the workflow
 * to each span, the memo included.
 */
function readable(
  { name, traceId, spanId, parentSpanId, startMs, endMs, failure }: CompletedSpan,
  { workflowId, runId }: WorkflowInfo,
  resource: Resource,
): ReadableSpan {
  return {
    name,
    kind: SpanKind.INTERNAL,
    spanContext: () => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED }),
    parentSpanId,
    startTime: millisToHrTime(startMs),
    endTime: millisToHrTime(endMs),
    duration: millisToHrTime(endMs - startMs),
    status:
      failure === undefined
        ? { code: SpanStatusCode.OK }
        : { code: SpanStatusCode.ERROR, message: failure },
    attributes: { [WORKFLOW_ID_ATTR_KEY]: workflowId, [RUN_ID_ATTR_KEY]: runId },
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationLibrary: { name: 'holdfast-workflow' },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Converts a time to OpenTelemetry's format: seconds and nanoseconds. */
function millisToHrTime(ms: number): HrTime {
  const seconds = Math.trunc(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
