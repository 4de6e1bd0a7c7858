/**
 * Interceptors for clients and activities. They omit the spans of the SDK's own interceptors that
 * carry no information.
 */
import { context, isSpanContextValid, trace, TraceFlags } from '@opentelemetry/api';
import type {
  Next,
  WorkflowClientInterceptor,
  WorkflowDescribeInput,
  WorkflowQueryInput,
  WorkflowSignalInput,
  WorkflowSignalWithStartInput,
  WorkflowStartInput,
  WorkflowStartUpdateInput,
} from '@temporalio/client';
import type { Headers } from '@temporalio/common';
import { OpenTelemetryWorkflowClientInterceptor } from '@temporalio/interceptors-opentelemetry/lib/client/index.js';
import {
  OpenTelemetryActivityInboundInterceptor,
  OpenTelemetryActivityOutboundInterceptor,
} from '@temporalio/interceptors-opentelemetry/lib/worker/index.js';
import type {
  ActivityExecuteInput,
  ActivityInboundCallsInterceptor,
  ActivityInterceptorsFactory,
} from '@temporalio/worker';
import { TRACE_HEADER } from '../../core/activities/index.ts';

/** Adds the current trace, if it is recorded, to starts, signals and updates. */
export class TracingClientInterceptor extends OpenTelemetryWorkflowClientInterceptor {
  override async start(
    input: WorkflowStartInput,
    next: Next<WorkflowClientInterceptor, 'start'>,
  ): Promise<string> {
    return await super.start(input, async (traced) => await next(withoutUnrecorded(traced)));
  }

  override async startWithDetails(
    input: WorkflowStartInput,
    next: Next<WorkflowClientInterceptor, 'startWithDetails'>,
  ): ReturnType<Next<WorkflowClientInterceptor, 'startWithDetails'>> {
    return await super.startWithDetails(
      input,
      async (traced) => await next(withoutUnrecorded(traced)),
    );
  }

  override async signal(
    input: WorkflowSignalInput,
    next: Next<WorkflowClientInterceptor, 'signal'>,
  ): Promise<void> {
    await super.signal(input, async (traced) => await next(withoutUnrecorded(traced)));
  }

  override async signalWithStart(
    input: WorkflowSignalWithStartInput,
    next: Next<WorkflowClientInterceptor, 'signalWithStart'>,
  ): Promise<string> {
    return await super.signalWithStart(
      input,
      async (traced) => await next(withoutUnrecorded(traced)),
    );
  }

  override async startUpdate(
    input: WorkflowStartUpdateInput,
    next: Next<WorkflowClientInterceptor, 'startUpdate'>,
  ): ReturnType<Next<WorkflowClientInterceptor, 'startUpdate'>> {
    return await super.startUpdate(input, async (traced) => await next(withoutUnrecorded(traced)));
  }

  /**
   * Passes a query on without a trace: metrics and readiness checks send queries and descriptions
   * continuously.
   */
  override async query(
    input: WorkflowQueryInput,
    next: Next<WorkflowClientInterceptor, 'query'>,
  ): Promise<unknown> {
    return await next(input);
  }

  override async describe(
    input: WorkflowDescribeInput,
    next: Next<WorkflowClientInterceptor, 'describe'>,
  ): ReturnType<Next<WorkflowClientInterceptor, 'describe'>> {
    return await next(input);
  }
}

/** Returns the headers to send. Each header adds bytes to the history. */
function withoutUnrecorded<I extends { readonly headers: Headers }>(input: I): I {
  const span = trace.getSpanContext(context.active());
  if (
    span !== undefined &&
    isSpanContextValid(span) &&
    (span.traceFlags & TraceFlags.SAMPLED) !== 0
  )
    return input;
  const { [TRACE_HEADER]: _unrecorded, ...headers } = input.headers;
  return { ...input, headers };
}

/**
 * Traces activities only of workflows that are in a trace. Otherwise each span, for example of a
 * set, would start its own trace.
 */
class TracingActivityInterceptor extends OpenTelemetryActivityInboundInterceptor {
  override async execute(
    input: ActivityExecuteInput,
    next: Next<ActivityInboundCallsInterceptor, 'execute'>,
  ): Promise<unknown> {
    return input.headers[TRACE_HEADER] === undefined
      ? await next(input)
      : await super.execute(input, next);
  }
}

/** Interceptors that record a span for each activity and propagate its trace. */
export const traceActivities: ActivityInterceptorsFactory = (activity) => ({
  inbound: new TracingActivityInterceptor(activity),
  outbound: new OpenTelemetryActivityOutboundInterceptor(activity),
});
