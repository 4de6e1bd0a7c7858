import { expect, test } from '@jest/globals';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { Resource } from '@opentelemetry/resources';
import type { WorkflowInfo } from '@temporalio/workflow';
import type { CompletedSpan } from '../../../core/activities/index.ts';
import { spanSink } from '../../../worker/tracing/spanSink.ts';

const LIFE = { workflowId: 'runner-a', runId: 'run-1' } as WorkflowInfo;

function ended(spanId: string): CompletedSpan {
  return {
    name: 'RunWorkflow:runner',
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId,
    parentSpanId: '00f067aa0ba902b7',
    startMs: 1_000,
    endMs: 2_500,
  };
}

function sink(): { readonly end: (spanId: string) => void; readonly taken: () => string[] } {
  const spans: ReadableSpan[] = [];
  const target = {
    resource: Resource.empty(),
    spanProcessor: {
      onStart: () => undefined,
      onEnd: (span: ReadableSpan) => void spans.push(span),
      shutdown: async () => undefined,
      forceFlush: async () => undefined,
    },
  };
  const { holdfastSpans } = spanSink(target);
  return {
    end: (spanId) => void holdfastSpans.ended.fn(LIFE, ended(spanId)),
    taken: () => spans.map((span) => span.spanContext().spanId),
  };
}

test('a span that a retried task reports again is exported once', () => {
  const { end, taken } = sink();
  for (const spanId of ['a1', 'b2', 'a1', 'c3', 'b2']) end(spanId);
  expect(taken()).toEqual(['a1', 'b2', 'c3']);
});

test('the number of remembered spans is limited', () => {
  const { end, taken } = sink();
  for (let index = 0; index <= 10_000; index += 1) end(`${index}`);
  end('10000');
  expect(taken()).toHaveLength(10_001);
  end('0');
  expect(taken()).toHaveLength(10_002);
});
