import { setTimeout as delay } from 'node:timers/promises';
import { QueryNotRegisteredError } from '@temporalio/client';
import { grpcStatus } from '../../activities/shared/grpcStatus.ts';

/** google.rpc.Code: what an overloaded server, or a worker that is behind, says of a question; the next one may be answered. */
const NOT_NOW = new Set([
  4 /* DEADLINE_EXCEEDED */, 8 /* RESOURCE_EXHAUSTED */,
  9 /* FAILED_PRECONDITION: of a workflow whose tasks time out */, 14 /* UNAVAILABLE */,
]);

/** Asks Temporal until it answers, and tells when it did not. @throws Error what it answers otherwise */
export async function retryUntilAvailable<T>(
  { progress }: { readonly progress: (line: string) => void },
  ask: () => Promise<T>,
): Promise<T> {
  for (; ; await delay(1_000)) {
    try {
      return await ask();
    } catch (failed) {
      // Of a run that has just begun, and has not come to its handlers.
      if (failed instanceof QueryNotRegisteredError) continue;
      const status = grpcStatus(failed);
      if (status === undefined || !NOT_NOW.has(status.code)) throw failed;
      progress(`no answer: ${status.details}`);
    }
  }
}
