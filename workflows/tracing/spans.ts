import { defaultPayloadConverter, type Headers, type Payload } from '@temporalio/common';
import {
  AsyncLocalStorage,
  ContinueAsNew,
  getRandomStream,
  isCancellation,
  proxySinks,
} from '@temporalio/workflow';
import { TRACE_HEADER, type TraceSinks } from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  parseTraceparent,
  formatTraceparent,
  type TraceContext,
} from '../../core/domain/traceContext.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/**
 * Spans of one workflow. Whether there are any depends only on the headers in its history. A worker
 * that exports no spans runs the same code as one that does, so a workflow can move between them.
 * Calls outside a trace are passed through.
 *
 * The SDK's own interceptors are not used. With them, every workflow of the worker creates spans,
 * whatever its history contains, and OpenTelemetry's whole SDK is loaded into each workflow's
 * memory.
 */
export class Spans {
  /** Created with the first span. A workflow that is not traced has none. */
  #around: InstanceType<typeof AsyncLocalStorage<TraceContext>> | undefined;

  /** Returns the active span. */
  active(): TraceContext | undefined {
    return this.#around?.getStore();
  }

  /**
   * Runs a function in a new span, which ends with it.
   *
   * @param parent - parent of the new span
   */
  async run<T>(
    name: string,
    parent: TraceContext,
    act: (headers: Headers) => Promise<T>,
  ): Promise<T> {
    this.#around ??= new AsyncLocalStorage<TraceContext>();
    const context: TraceContext = { traceId: parent.traceId, spanId: spanId(), sampled: true };
    const startMs = Date.now();
    let failure: string | undefined;
    try {
      return await this.#around.run(context, async () => await act(headersOf(context)));
    } catch (error) {
      if (!(error instanceof ContinueAsNew) && !isCancellation(error))
        failure = errorMessage(error);
      throw error;
    } finally {
      const { traceId, spanId: id } = context;
      proxySinks<TraceSinks>().holdfastSpans.ended({
        name,
        traceId,
        spanId: id,
        parentSpanId: parent.spanId,
        startMs,
        endMs: Date.now(),
        ...omitUndefined({ failure }),
      });
    }
  }
}

/**
 * Returns the span of the sender of a request.
 *
 * @returns `undefined` if there is none, or its trace is not recorded. Calls that follow then have
 * no trace header either.
 */
export function senderContext(headers: Headers): TraceContext | undefined {
  const header = headers[TRACE_HEADER];
  if (header === undefined) return undefined;
  const context = parseTraceparent(traceparentIn(header));
  return context?.sampled === true ? context : undefined;
}

/**
 * Returns the `traceparent` in a header. Anyone who may send a signal may send any header, so an
 * invalid one must not block the workflow.
 */
function traceparentIn(header: Payload): unknown {
  try {
    return defaultPayloadConverter.fromPayload<{ traceparent?: unknown } | null>(header)
      ?.traceparent;
  } catch {
    return undefined; // The encoding is unknown, or the payload is not JSON.
  }
}

function headersOf(context: TraceContext): Headers {
  return {
    [TRACE_HEADER]: defaultPayloadConverter.toPayload({ traceparent: formatTraceparent(context) }),
  };
}

/**
 * Returns a span id from a random stream of its own, so that a traced workflow makes the same
 * random choices as one that is not traced.
 */
function spanId(): string {
  const bytes = getRandomStream('holdfast/spans').fill(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
