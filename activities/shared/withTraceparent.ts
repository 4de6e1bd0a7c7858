import { ROOT_CONTEXT, context, defaultTextMapGetter, propagation } from '@opentelemetry/api';

/** Does it in the trace that `traceparent` names; with neither that nor tracing in this process, as it is. */
export async function withTraceparent<T>(
  traceparent: string | undefined,
  act: () => Promise<T>,
): Promise<T> {
  if (traceparent === undefined) return await act();
  return await context.with(
    propagation.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter),
    act,
  );
}
