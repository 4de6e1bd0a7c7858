import { createHash } from 'node:crypto';
import type { JobDelivery } from '../../jobDelivery.ts';
import type { DeliverySpan } from '../deliveryFormat.ts';

/** Describes a delivery for traces: all deliveries about one attempt of a run are in one trace. */
export function deliverySpan({ event, ciServer }: JobDelivery, deliveryId: string): DeliverySpan {
  const { runId: run } = event;
  return {
    name: `webhook workflow_job ${event.action}`,
    attributes: {
      [`${ciServer}.repository`]: event.repository,
      [`${ciServer}.job.id`]: event.jobId,
      [`${ciServer}.run.attempt`]: event.runAttempt,
      ...(run === undefined ? {} : { [`${ciServer}.run.id`]: run }),
      [`${ciServer}.delivery`]: deliveryId.slice(0, 64),
    },
    ...(run === undefined ? {} : { traceId: traceIdOf(run, event.runAttempt) }),
  };
}

/**
 * Returns the trace ID of an attempt of a run. OpenTelemetry's collector derives it in the same way
 * in its receiver of GitHub's webhooks, so the spans of both are in the same trace
 * (https://github.com/open-telemetry/opentelemetry-collector-contrib/blob/main/receiver/githubreceiver/trace_event_handling.go,
 * `newTraceID`).
 */
function traceIdOf(run: string, attempt: number): string {
  return createHash('sha256').update(`${run}${attempt}t`).digest('hex').slice(0, 32);
}
