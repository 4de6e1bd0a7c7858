import type * as OpenTelemetryApi from '@opentelemetry/api';
import { missingPackage } from './optionalPackages.ts';

/**
 * Import of the API, started once: a missing package would be searched for again with each call.
 */
let loading: Promise<typeof OpenTelemetryApi | undefined> | undefined;

/**
 * Calls the function in the trace of `traceparent`. Without a `traceparent`, or without tracing in
 * this process, calls it without a trace.
 */
export async function withTraceparent<T>(
  traceparent: string | undefined,
  act: () => Promise<T>,
): Promise<T> {
  const api = traceparent === undefined ? undefined : await (loading ??= openTelemetry());
  if (api === undefined) return await act();
  const { ROOT_CONTEXT, context, defaultTextMapGetter, propagation } = api;
  return await context.with(
    propagation.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter),
    act,
  );
}

/**
 * Returns the OpenTelemetry API.
 * @returns `undefined` if it is not installed, so nothing in this process traces
 */
async function openTelemetry(): Promise<typeof OpenTelemetryApi | undefined> {
  try {
    return await import('@opentelemetry/api');
  } catch (error) {
    if (missingPackage(error) === '@opentelemetry/api') return undefined;
    throw error;
  }
}
