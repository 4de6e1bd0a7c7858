/**
 * Position of a span in a trace, as the header `traceparent` carries it
 * (https://www.w3.org/TR/trace-context/#traceparent-header).
 */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the trace is recorded. */
  readonly sampled: boolean;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Parses a `traceparent` header. @returns `undefined` if the text is invalid */
export function parseTraceparent(text: unknown): TraceContext | undefined {
  const [, traceId, spanId, flags] = (typeof text === 'string' && TRACEPARENT.exec(text)) || [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Returns the text of a `traceparent` header, version 00. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
