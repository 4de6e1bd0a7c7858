import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { JobDelivery } from '../../../worker/webhook/jobDelivery.ts';
import { GITHUB_DELIVERIES } from '../../../worker/webhook/servers/github/gitHubDeliveries.ts';
import {
  ACCEPTED,
  NO_MATCH,
  UNAVAILABLE,
  type WebhookResponse,
} from '../../../worker/webhook/webhookResponses.ts';
import { deliverySpans } from '../../../worker/tracing/deliverySpans.ts';
import { TraceIds } from '../../../worker/tracing/traceIds.ts';

const exported = new InMemorySpanExporter();
const ids = new TraceIds();
const tracer = new BasicTracerProvider({
  idGenerator: ids,
  spanProcessors: [new SimpleSpanProcessor(exported)],
}).getTracer('test');
const record = deliverySpans(tracer, ids);
const traces = async (
  delivery: JobDelivery,
  id: string,
  pass: Parameters<typeof record>[1],
): Promise<WebhookResponse> => await record(GITHUB_DELIVERIES.span(delivery, id), pass);

/** The trace id of the collector's receiver of GitHub's webhook: sha256 of "17" + "2" + "t". */
const TRACE_OF_RUN_17_2 = '86c9da7f8004732f43c483d449e20b9b';

beforeAll(
  () => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()),
);
beforeEach(() => exported.reset());
afterAll(() => context.disable());

function job(action: 'queued' | 'completed', runId?: string): JobDelivery {
  return {
    ciServer: 'github',
    event: {
      action,
      jobId: '5',
      runAttempt: 2,
      repository: 'acme/app',
      labels: [],
      at: 1,
      ...(runId === undefined ? {} : { runId }),
    },
  };
}

test('all deliveries about a run are in the trace of its id, independent of their trace headers', async () => {
  const stranger = {
    traceId: 'a'.repeat(32),
    spanId: 'b'.repeat(16),
    traceFlags: 1,
    isRemote: true,
  };
  await context.with(trace.setSpanContext(context.active(), stranger), async () => {
    for (const action of ['queued', 'completed'] as const)
      expect(await traces(job(action, '17'), 'd-1', async () => ACCEPTED)).toBe(ACCEPTED);
  });
  expect(
    exported
      .getFinishedSpans()
      .map((span) => [span.name, span.parentSpanId, span.spanContext().traceId]),
  ).toEqual([
    ['webhook workflow_job queued', undefined, TRACE_OF_RUN_17_2],
    ['webhook workflow_job completed', undefined, TRACE_OF_RUN_17_2],
  ]);
  expect(exported.getFinishedSpans()[0]?.attributes).toEqual({
    'github.repository': 'acme/app',
    'github.job.id': '5',
    'github.run.id': '17',
    'github.run.attempt': 2,
    'github.delivery': 'd-1',
    'http.response.status_code': 202,
  });
});

test('a delivery without the id of a run starts a trace, and passes its span on', async () => {
  const contexts: (string | undefined)[] = [];
  for (const news of [job('queued'), job('completed')])
    await traces(news, 'd', async (given) => (contexts.push(given), ACCEPTED));
  const spans = exported.getFinishedSpans();
  expect(contexts).toEqual(
    spans.map((span) => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`),
  );
  expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(2);
});

test('the span of a rejected delivery is an error; that of a foreign one is not exported', async () => {
  await traces(job('queued', '17'), 'd', async () => NO_MATCH);
  await traces(job('queued', '17'), 'd', async () => UNAVAILABLE);
  expect(exported.getFinishedSpans().map(({ status }) => status)).toEqual([
    { code: 2, message: 'temporal_unavailable' },
  ]);
});
