import { setTimeout as delay } from 'node:timers/promises';
import { QueryNotRegisteredError } from '@temporalio/client';
import { grpcStatus } from '../../activities/shared/grpcStatus.ts';

/** Codes (google.rpc.Code) of an overloaded server or worker, after which a retry may succeed. */
const RETRYABLE_CODES = new Set([
  4 /* DEADLINE_EXCEEDED */, 8 /* RESOURCE_EXHAUSTED */,
  9 /* FAILED_PRECONDITION: the workflow's tasks time out */, 14 /* UNAVAILABLE */,
]);

/**
 * Repeats a request to Temporal until it succeeds, and reports each failure.
 * @throws Error for any other error
 */
export async function retryUntilAvailable<T>(
  { progress }: { readonly progress: (line: string) => void },
  request: () => Promise<T>,
): Promise<T> {
  for (; ; await delay(1_000)) {
    try {
      return await request();
    } catch (failed) {
      // The run has just started, and has not registered its handlers yet.
      if (failed instanceof QueryNotRegisteredError) continue;
      const status = grpcStatus(failed);
      if (status === undefined || !RETRYABLE_CODES.has(status.code)) throw failed;
      progress(`request failed, retrying: ${status.details}`);
    }
  }
}
