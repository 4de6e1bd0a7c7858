import { FAILURE_TYPES, failure } from './failures.ts';
import { UnknownCredentialError, type ActivityPorts } from './ports.ts';

/**
 * Calls with a credential run on its own task queue, which nobody polls when no worker knows the credential: without this check such a
 * runner would wait in silence.
 * @throws ApplicationFailure `UnknownCredential` (non-retryable), naming those that are known
 */
export function checkCredential({ ciServers }: ActivityPorts, credential: string): void {
  try {
    ciServers.get(credential);
  } catch (error) {
    if (error instanceof UnknownCredentialError) throw failure(error.message, FAILURE_TYPES.unknownCredential, { final: true });
    throw error;
  }
}
