import { createHash } from 'node:crypto';
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
import type { JobDelivery } from '../webhook/jobDelivery.ts';
import type { TraceIds } from './traceIds.ts';

/**
 * A span for each delivery that is passed on, or should be. All that is told of the runs of one workflow's attempt is in one trace, whichever process is told, and whatever
 * another delivery said before: its id is reckoned from them, as OpenTelemetry's collector does in its receiver of GitHub's webhook
 * (https://github.com/open-telemetry/opentelemetry-collector-contrib/blob/main/receiver/githubreceiver/trace_event_handling.go, `newTraceID`). So the spans of both are in
 * the same trace. What a delivery's headers say of traces is anybody's word, and is not read.
 */
export function deliverySpans(tracer: Tracer, ids: TraceIds): TraceDelivery {
  return async (news, delivery, pass) => {
    const span = ids.startIn(traceIdOf(news), () =>
      tracer.startSpan(
        `webhook workflow_job ${news.event.action}`,
        {
          kind: SpanKind.SERVER,
          attributes: { ...attributesOf(news), 'github.delivery': delivery.slice(0, 64) },
        },
        ROOT_CONTEXT,
      ),
    );
    const answer = await context.with(
      trace.setSpan(ROOT_CONTEXT, span),
      async () => await pass(traceOf(span)),
    );
    // Of jobs for other runners most webhooks tell more than of ours: a span that does not end is not exported.
    if (answer === NO_MATCH) return answer;
    span.setAttribute('http.response.status_code', answer.status);
    if (answer.status >= 500)
      span.setStatus({ code: SpanStatusCode.ERROR, message: answer.outcome });
    span.end();
    return answer;
  };
}

function attributesOf({ event, run }: JobDelivery): Record<string, string | number> {
  return {
    'github.repository': event.repository,
    'github.job.id': event.jobId,
    'github.run.attempt': event.runAttempt,
    ...(run === undefined ? {} : { 'github.run.id': run }),
  };
}

/** @returns `undefined`: any will do */
function traceIdOf({ event, run }: JobDelivery): string | undefined {
  if (run === undefined) return undefined;
  return createHash('sha256').update(`${run}${event.runAttempt}t`).digest('hex').slice(0, 32);
}

function traceOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return (traceFlags & TraceFlags.SAMPLED) === 0
    ? undefined
    : formatTraceparent({ traceId, spanId, sampled: true });
}
