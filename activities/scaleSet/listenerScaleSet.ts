/** Functions that the activities of a scale set listener share. */
import { activityInfo } from '@temporalio/activity';
import type { SessionCursor } from '../../core/activities/index.ts';
import {
  scaleSetListenerWorkflowId,
  type ScaleSetListenerInput,
} from '../../core/contract/index.ts';
import { formatLocation } from '../../core/domain/location.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { ScaleSetRequest } from '../../core/domain/scaleSet.ts';
import { locationLabel } from '../compute/naming.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { ScaleSets, ScaleSetSession } from '../ports/scaleSets.ts';
import { callingWorkflowId } from '../shared/callingWorkflow.ts';
import { invalidInput } from '../shared/invalidInput.ts';

/** Time to wait before a retry after the credential was rejected (ms). */
export const CREDENTIALS_RETRY_MS = 60_000;

/**
 * Checks that the calling workflow is the listener of this set.
 * @throws ApplicationFailure `InvalidInput` (non-retryable) if it is not
 */
export function checkListener({ set }: ScaleSetListenerInput): void {
  if (callingWorkflowId() !== scaleSetListenerWorkflowId(set))
    throw invalidInput([
      { code: 'denied', field: 'listener.set', message: 'must be the set of this listener' },
    ]);
}

/**
 * Returns the scale sets of the listener's credential.
 * @throws CiServerError `rejected` if its CI server has no scale sets
 */
export function scaleSetsOf(
  { ciServers }: ActivityPorts,
  { credential }: ScaleSetListenerInput,
): ScaleSets {
  const { scaleSets } = ciServers.get(credential);
  if (scaleSets === undefined)
    throw new CiServerError(
      'rejected',
      `credential "${credential}" is for a CI server without scale sets`,
    );
  return scaleSets;
}

/** Returns the request for the listener's scale set. */
export async function requestOf(
  { compute }: ActivityPorts,
  { scope, name, group, labels, adopt }: ScaleSetListenerInput,
): Promise<ScaleSetRequest> {
  const mark = locationLabel(formatLocation(await compute.location()));
  return { scope, name, group, labels, mark, ...omitUndefined({ adopt }) };
}

/** Returns the name that the server shows to other clients that request a session. */
export const sessionOwner = ({ set }: ScaleSetListenerInput): string =>
  `holdfast-${set}-${activityInfo().attempt}`;

/** Continues a session, or returns `undefined` if the server has ended it. */
export async function continueSession(
  sets: ScaleSets,
  { scope }: ScaleSetListenerInput,
  scaleSetId: number,
  { sessionId }: SessionCursor,
  signal: AbortSignal,
): Promise<ScaleSetSession | undefined> {
  try {
    return await sets.adoptSession(scope, scaleSetId, sessionId, signal);
  } catch (error) {
    if (error instanceof CiServerError && error.kind === 'session_lost') return undefined;
    throw error;
  }
}
