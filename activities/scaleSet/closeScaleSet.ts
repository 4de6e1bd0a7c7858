import { cancellationSignal, log } from '@temporalio/activity';
import type { CloseScaleSetInput } from '../../core/activities/index.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { toFailure } from '../shared/failures.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import {
  CREDENTIALS_RETRY_MS,
  checkListener,
  continueSession,
  requestOf,
  scaleSetsOf,
  sessionOwner,
} from './listenerScaleSet.ts';

/** Errors that mean that the scale set is not the listener's. */
const NOT_OURS = new Set(['conflict', 'name_taken', 'session_lost']);

/**
 * Ends the session of a listener, and removes its scale set if that is requested. Only the
 * holder of the session may remove a scale set: the mark says only that this installation created
 * it, and with `adopt` it may be in use by another system.
 */
export async function closeScaleSet(
  ports: ActivityPorts,
  input: CloseScaleSetInput,
): Promise<void> {
  const { name, set } = input.listener;
  checkListener(input.listener);
  try {
    await withHeartbeats(`closing the scale set ${name}`, async () => await close(ports, input));
  } catch (error) {
    if (!(error instanceof CiServerError && NOT_OURS.has(error.kind)))
      throw toFailure(
        error,
        { credentialsRetryMs: CREDENTIALS_RETRY_MS },
        { rejectionIsFinal: false },
      );
    log.warn('left a scale set that is not ours', { set, scaleSet: name, error: error.message });
  }
}

async function close(
  ports: ActivityPorts,
  { listener, cursor, remove }: CloseScaleSetInput,
): Promise<void> {
  const sets = scaleSetsOf(ports, listener);
  const { adopt = false, ...own } = await requestOf(ports, listener);
  // A scale set of another system is marked as soon as the listener has its session.
  const request = adopt && cursor !== undefined ? { ...own, adopt } : own;
  const signal = cancellationSignal();
  const found = await sets.find(request, signal);
  if (found === undefined) return;
  let session = cursor && (await continueSession(sets, listener, found.id, cursor, signal));
  // Without the signal: the response to an aborted request would leave an unknown session open.
  if (session === undefined && remove)
    session = await sets.openSession(listener.scope, found.id, sessionOwner(listener));
  await session?.close(signal);
  if (remove) await sets.remove(request, signal);
}
