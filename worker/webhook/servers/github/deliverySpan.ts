import { createHash } from 'node:crypto';
import { omitUndefined } from '../../../../core/domain/omitUndefined.ts';
import type { JobDelivery } from '../../jobDelivery.ts';
import type { DeliverySpan } from '../deliveryFormat.ts';

/** Describes a delivery for traces: all deliveries about one attempt of a run are in one trace. */
export function deliverySpan({ event, run }: JobDelivery, deliveryId: string): DeliverySpan {
  return {
    name: `webhook workflow_job ${event.action}`,
    attributes: {
      'github.repository': event.repository,
      'github.job.id': event.jobId,
      'github.run.attempt': event.runAttempt,
      ...omitUndefined({ 'github.run.id': run }),
      'github.delivery': deliveryId.slice(0, 64),
    },
    ...(run === undefined ? {} : { traceId: traceIdOf(run, event.runAttempt) }),
  };
}

/**
 * OpenTelemetry's collector derives the ID in the same way in its receiver of GitHub's webhooks, so
 * the spans of both are in the same trace
 * (https://github.com/open-telemetry/opentelemetry-collector-contrib/blob/main/receiver/githubreceiver/trace_event_handling.go, `newTraceID`).
 */
function traceIdOf(run: string, attempt: number): string {
  return createHash('sha256').update(`${run}${attempt}t`).digest('hex').slice(0, 32);
}
