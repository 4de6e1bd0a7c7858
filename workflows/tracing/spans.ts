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

/**
 * The spans of one workflow. Whether there are any follows from its history alone, that is from the headers in it: a worker that exports none
 * runs the same code as one that does, so a life may go from one to the other. What is not traced goes straight on.
 *
 * Not the SDK's own: those are made by every workflow of a worker that has them, whatever its history says, and bring OpenTelemetry's whole SDK
 * into each workflow's memory.
 */
export class Spans {
  /** Made with the first span: a workflow that is not traced has none. */
  #around: InstanceType<typeof AsyncLocalStorage<TraceContext>> | undefined;

  /** The span that this is done in. */
  active(): TraceContext | undefined {
    return this.#around?.getStore();
  }

  /** Does it in a span, which ends with it. @param parent - of the span */
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
        failure = error instanceof Error ? error.message : String(error);
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

/** The span in whose name something was sent here. @returns `undefined` also where its trace is not recorded: what comes of it then bears no header either */
export function senderContext(headers: Headers): TraceContext | undefined {
  const header = headers[TRACE_HEADER];
  if (header === undefined) return undefined;
  const context = parseTraceparent(traceparentIn(header));
  return context?.sampled === true ? context : undefined;
}

/** Whoever may send a signal may send any header with it: one that says nothing must not stop the workflow. */
function traceparentIn(header: Payload): unknown {
  try {
    return defaultPayloadConverter.fromPayload<{ traceparent?: unknown } | null>(header)
      ?.traceparent;
  } catch {
    return undefined; // of no encoding that is known, or no JSON
  }
}

function headersOf(context: TraceContext): Headers {
  return {
    [TRACE_HEADER]: defaultPayloadConverter.toPayload({ traceparent: formatTraceparent(context) }),
  };
}

/** From a stream of its own: a workflow that is traced makes the same random choices as one that is not. */
function spanId(): string {
  const bytes = getRandomStream('holdfast/spans').fill(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
