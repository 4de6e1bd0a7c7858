import type * as OpenTelemetryApi from '@opentelemetry/api';
import { missingPackage } from './optionalPackages.ts';

/** Asked for once: a package that is missing would be searched for again with each call. */
let loading: Promise<typeof OpenTelemetryApi | undefined> | undefined;

/** Does it in the trace that `traceparent` names; with neither that nor tracing in this process, as it is. */
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

/** Returns OpenTelemetry's API, or undefined where it is not installed: then nothing in this process traces. */
async function openTelemetry(): Promise<typeof OpenTelemetryApi | undefined> {
  try {
    return await import('@opentelemetry/api');
  } catch (error) {
    if (missingPackage(error) === '@opentelemetry/api') return undefined;
    throw error;
  }
}
