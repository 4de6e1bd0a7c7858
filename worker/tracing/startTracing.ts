import { setTimeout as delay } from 'node:timers/promises';
import {
  diag,
  DiagLogLevel,
  context,
  defaultTextMapGetter,
  propagation,
  ROOT_CONTEXT,
  trace,
  type Context,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { Resource, detectResourcesSync, envDetectorSync } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { ClientInterceptors } from '@temporalio/client';
import type { TraceDelivery } from '../webhook/webhook.ts';
import { RateLimitedLogger } from '../process/rateLimitedLogger.ts';
import { deliverySpans } from './deliverySpans.ts';
import { TracingClientInterceptor } from './interceptors.ts';
import type { SpanExportTarget } from './spanSink.ts';
import { TraceIds } from './traceIds.ts';

/** Tracing of this process. */
export interface Tracing extends SpanExportTarget {
  readonly client: ClientInterceptors;
  readonly deliveries: TraceDelivery;
  /** Runs an action in the trace that `TRACEPARENT` of the environment names, if it names one. */
  within<T>(traceparent: string | undefined, act: () => T): T;
  /**
   * Exports the remaining spans. Waits at most a few seconds for a collector that does not answer.
   */
  close(): Promise<void>;
}

/** Time that an exit waits for the collector (ms). */
const FLUSH_MS = 3_000;

/**
 * Starts the export of spans by OTLP over HTTP. Call it once in a process. OpenTelemetry's SDK
 * reads exporter, sampler, batches, resource and service name from the environment
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
 * @param service - name of the service, unless the environment has one
 * @param onProblem - called at a limited rate when spans cannot be exported
 */
export function startTracing(service: string, onProblem: (message: string) => void): Tracing {
  logExportErrors(onProblem);
  const resource = Resource.default()
    .merge(new Resource({ 'service.name': service }))
    .merge(detectResourcesSync({ detectors: [envDetectorSync] }));
  const ids = new TraceIds();
  const spanProcessor = new BatchSpanProcessor(new OTLPTraceExporter());
  const provider = new BasicTracerProvider({
    resource,
    idGenerator: ids,
    spanProcessors: [spanProcessor],
  });
  // Baggage is not propagated: it would be stored in histories.
  provider.register({
    contextManager: new AsyncLocalStorageContextManager().enable(),
    propagator: new W3CTraceContextPropagator(),
  });
  return {
    spanProcessor,
    resource,
    client: { workflow: [new TracingClientInterceptor()] },
    deliveries: deliverySpans(trace.getTracer('holdfast-webhook'), ids),
    within: (traceparent, act) => context.with(contextOf(traceparent), act),
    close: async () =>
      await Promise.race([
        provider.shutdown().catch((error: unknown) => onProblem(String(error))),
        delay(FLUSH_MS, undefined, { ref: false }),
      ]),
  };
}

function contextOf(traceparent: string | undefined): Context {
  return traceparent === undefined
    ? context.active()
    : propagation.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
}

function logExportErrors(onProblem: (message: string) => void): void {
  const log = new RateLimitedLogger();
  const report = (message: string): void =>
    log.line('export', (leftOut) =>
      onProblem(
        `spans are not exported: ${message}${leftOut === 0 ? '' : ` (and ${leftOut} more)`}`,
      ),
    );
  const nothing = (): void => undefined;
  diag.setLogger(
    { error: report, warn: report, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
