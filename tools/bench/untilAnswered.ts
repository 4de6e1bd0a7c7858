import { setTimeout as delay } from 'node:timers/promises';
import { isGrpcServiceError } from '@temporalio/client';

/** google.rpc.Code: what an overloaded server, or a worker that is behind, says of a question; the next one may be answered. */
const NOT_NOW = new Set([4 /* DEADLINE_EXCEEDED */, 8 /* RESOURCE_EXHAUSTED */, 14 /* UNAVAILABLE */]);

/** Asks Temporal until it answers, and tells when it did not. @throws Error what it answers otherwise */
export async function untilAnswered<T>({ progress }: { readonly progress: (line: string) => void }, ask: () => Promise<T>): Promise<T> {
  for (;; await delay(1_000)) {
    try {
      return await ask();
    } catch (failed) {
      const error = failed instanceof Error && isGrpcServiceError(failed.cause) ? failed.cause : failed;
      if (!isGrpcServiceError(error) || !NOT_NOW.has(error.code)) throw failed;
      progress(`no answer: ${error.details}`);
    }
  }
}
