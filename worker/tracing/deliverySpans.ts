import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import { formatTraceparent } from '../../core/domain/traceContext.ts';
import { NO_MATCH } from '../webhook/webhookResponses.ts';
import type { TraceDelivery } from '../webhook/webhook.ts';
import type { TraceIds } from './traceIds.ts';

/**
 * Records a span for each delivery that is passed on, or should be. The trace follows from the
 * description of the delivery, whichever process receives it. Trace headers of a delivery are
 * ignored, because any client can send them.
 */
export function deliverySpans(tracer: Tracer, ids: TraceIds): TraceDelivery {
  return async ({ name, attributes, traceId }, pass) => {
    const span = ids.startIn(traceId, () =>
      tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, ROOT_CONTEXT),
    );
    const answer = await context.with(
      trace.setSpan(ROOT_CONTEXT, span),
      async () => await pass(traceOf(span)),
    );
    // Most webhooks deliver more jobs of other runners than of Holdfast's. A span that does not end
    // is not exported.
    if (answer === NO_MATCH) return answer;
    span.setAttribute('http.response.status_code', answer.status);
    if (answer.status >= 500)
      span.setStatus({ code: SpanStatusCode.ERROR, message: answer.outcome });
    span.end();
    return answer;
  };
}

function traceOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return (traceFlags & TraceFlags.SAMPLED) === 0
    ? undefined
    : formatTraceparent({ traceId, spanId, sampled: true });
}
