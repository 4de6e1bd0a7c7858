/** Reads the events of a workflow's history in pages that fit into a message. */
import type { Client } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';
import { grpcStatus } from './grpcStatus.ts';

/** Event of a history. */
export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/** Events per request. The default of the server is 256, which may be more than 4 MiB. */
const PAGE = 64;
/** gRPC code of a message that is larger than its receiver allows. */
const RESOURCE_EXHAUSTED = 8;

/**
 * Returns the events of a run, oldest first. Each may have up to 2 MiB, and gRPC messages between
 * the services of Temporal up to 4 MiB, so pages that are too large are read in smaller ones.
 * Later pages are requested only as the caller goes on.
 * @throws the error of the Temporal client if the history cannot be read
 */
export async function* historyEvents(
  { workflowService, options }: Pick<Client, 'workflowService' | 'options'>,
  execution: { readonly workflowId: string; readonly runId: string },
): AsyncGenerator<HistoryEvent> {
  let maximumPageSize = PAGE;
  let nextPageToken: Uint8Array | undefined;
  for (;;) {
    try {
      const page = await workflowService.getWorkflowExecutionHistory({
        namespace: options.namespace,
        execution,
        maximumPageSize,
        ...(nextPageToken === undefined ? {} : { nextPageToken }),
      });
      yield* page.history?.events ?? [];
      if ((page.nextPageToken?.length ?? 0) === 0) return;
      nextPageToken = page.nextPageToken;
    } catch (error) {
      const { code, details = '' } = grpcStatus(error) ?? {};
      const isTooLarge = code === RESOURCE_EXHAUSTED && /larger than max/.test(details);
      if (!isTooLarge || maximumPageSize === 1) throw error;
      maximumPageSize = Math.ceil(maximumPageSize / 4);
    }
  }
}
