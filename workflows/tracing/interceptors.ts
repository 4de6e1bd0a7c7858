/** Traces workflows. Add this module to the bundle's `workflowInterceptorModules`. */
import type { Headers } from '@temporalio/common';
import {
  workflowInfo,
  type WorkflowInboundCallsInterceptor,
  type WorkflowInterceptors,
  type WorkflowOutboundCallsInterceptor,
} from '@temporalio/workflow';
import {
  DEREGISTRATION_WORKFLOW,
  JOB_GROUP_WORKFLOW,
  JOB_WORKFLOW,
  RERUN_WORKFLOW,
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
} from '../../core/contract/index.ts';
import { Spans, senderContext } from './spans.ts';

/**
 * Workflows that complete by themselves and get a span. A workflow without an end of its own, such
 * as a set, is in no trace; only its signals and updates are.
 */
const LIVES: ReadonlySet<string> = new Set([
  RUNNER_WORKFLOW,
  JOB_WORKFLOW,
  DEREGISTRATION_WORKFLOW,
  RERUN_WORKFLOW,
]);
const OURS: ReadonlySet<string> = new Set([...LIVES, RUNNER_SET_WORKFLOW, JOB_GROUP_WORKFLOW]);

/**
 * Returns the interceptors of one workflow. Workflows of other projects, which may be in the same
 * bundle, are not traced.
 */
export function interceptors(): WorkflowInterceptors {
  const spans = new Spans();
  return { inbound: [inbound(spans)], outbound: [outbound(spans)] };
}

function inbound(spans: Spans): WorkflowInboundCallsInterceptor {
  return {
    execute(input, next) {
      const { workflowType } = workflowInfo();
      const sender = LIVES.has(workflowType) ? senderContext(input.headers) : undefined;
      return sender === undefined
        ? next(input)
        : spans.run(`RunWorkflow:${workflowType}`, sender, async () => await next(input));
    },
    handleSignal(input, next) {
      const sender = OURS.has(workflowInfo().workflowType)
        ? senderContext(input.headers)
        : undefined;
      return sender === undefined
        ? next(input)
        : spans.run(`HandleSignal:${input.signalName}`, sender, async () => await next(input));
    },
    handleUpdate(input, next) {
      const sender = OURS.has(workflowInfo().workflowType)
        ? senderContext(input.headers)
        : undefined;
      return sender === undefined
        ? next(input)
        : spans.run(`HandleUpdate:${input.name}`, sender, async () => await next(input));
    },
  };
}

function outbound(spans: Spans): WorkflowOutboundCallsInterceptor {
  /** Runs the call in a span of its own, if there is an active span. */
  const send = <I extends { readonly headers: Headers }, T>(
    name: string,
    input: I,
    next: (input: I) => Promise<T>,
  ): Promise<T> => {
    const active = spans.active();
    return active === undefined
      ? next(input)
      : spans.run(
          name,
          active,
          async (headers) => await next({ ...input, headers: { ...input.headers, ...headers } }),
        );
  };
  return {
    scheduleActivity: (input, next) => send(`StartActivity:${input.activityType}`, input, next),
    scheduleLocalActivity: (input, next) =>
      send(`StartActivity:${input.activityType}`, input, next),
    startChildWorkflowExecution: (input, next) =>
      send(`StartChildWorkflow:${input.workflowType}`, input, next),
    signalWorkflow: (input, next) => send(`SignalWorkflow:${input.signalName}`, input, next),
    continueAsNew: (input, next) =>
      send(`ContinueAsNew:${input.options.workflowType}`, input, next),
    getLogAttributes: (input, next) => {
      const active = spans.active();
      return next(
        active === undefined
          ? input
          : { ...input, trace_id: active.traceId, span_id: active.spanId },
      );
    },
  };
}
