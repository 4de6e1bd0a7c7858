import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import {
  FAILURE_TYPES,
  type RegistrationRemoval,
  type RemoveRegistrationInput,
} from '../../core/activities/index.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { applicationFailure } from '../shared/failures.ts';
import {
  isKnownOwned,
  markOwned,
  notByName,
  ownershipError,
} from '../shared/registrationOwnership.ts';
import { rejection } from '../shared/rejections.ts';
import { removeUnlessBusy } from '../shared/removeUnlessBusy.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { nonRetryableAfterDeadline } from '../shared/deadline.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { CiServer } from '../ports/ciServer.ts';
import type { Compute } from '../ports/compute.ts';
import type { ScaleSets } from '../ports/scaleSets.ts';

/**
 * Number of rejected attempts by runner. If the workflow cancels the activity between two attempts
 * because the runner has reported the end of its job, no trace of the attempts is left in the
 * history. The number that is shown to people is therefore kept in this process.
 */
const refusals = new LRUCache<string, number>({ max: 20_000 });

/**
 * Requests the removal of a registration from the CI server, which alone decides whether a runner
 * may be removed.
 * @throws ApplicationFailure `ForeignRegistration` (non-retryable) if the registration does not
 * belong to this installation or location
 */
export async function removeRegistration(
  { ciServers, compute }: ActivityPorts,
  input: RemoveRegistrationInput,
): Promise<RegistrationRemoval> {
  const key = `${input.credential}/${input.scope.name}/${input.runner.name}`;
  const { attempt } = activityInfo();
  const refused = refusals.get(key) ?? 0;
  try {
    const removal = await withHeartbeats(
      `removing the registration of ${input.runner.name}`,
      async () => await remove(ciServers.get(input.credential), compute, input),
    );
    refusals.delete(key);
    return {
      ...removal,
      attempts: Math.max(attempt, refused + 1),
      ...(attempt > 1 ? { afterRetry: true as const } : {}),
    };
  } catch (error) {
    refusals.set(key, refused + 1);
    // An unknown rejection does not mean that the runner cannot be removed, so it is retried.
    throw nonRetryableAfterDeadline(rejection(error, input, { isFinal: false }));
  }
}

/**
 * Checks first that the registration belongs to this installation and location. No input can
 * disable this check, because anyone who can write to the Temporal namespace can write any input.
 */
async function remove(
  ciServer: CiServer,
  compute: Compute,
  input: RemoveRegistrationInput,
): Promise<Pick<RegistrationRemoval, 'result' | 'runnerId'>> {
  const { credential, scope, runner, onBusy } = input;
  const signal = cancellationSignal();
  const registered = { credential, scope, name: runner.name };
  const found =
    runner.id !== undefined && isKnownOwned(registered, runner.id)
      ? undefined
      : await ciServer.findRunner(scope, runner, signal);
  if (found !== undefined) {
    const fault = ownershipError(found, runner.name, await compute.location());
    if (fault !== undefined)
      throw applicationFailure(fault, FAILURE_TYPES.foreignRegistration, { final: true });
    markOwned(registered, found.id);
  }
  const runnerId = runner.id ?? found?.id;
  if (runnerId === undefined) return { result: 'unlisted' };
  try {
    const registration = { id: runnerId, name: runner.name };
    let result = await removeUnlessBusy(ciServer, scope, registration, signal);
    // A server that does not list runners of scale sets knows them there.
    if (result === 'absent' && input.inScaleSet === true && ciServer.scaleSets !== undefined)
      result = await removeFromScaleSet(ciServer.scaleSets, input, runnerId, found !== undefined);
    return { result, runnerId };
  } catch (error) {
    if (onBusy === 'return' && error instanceof CiServerError && error.kind === 'busy')
      return { result: 'busy', runnerId };
    throw error;
  }
}

/**
 * Removes a runner of a scale set that the CI server did not find elsewhere, so that its ownership
 * is not known yet.
 * @param isOwn - whether the registration was found and is of this installation
 */
async function removeFromScaleSet(
  scaleSets: ScaleSets,
  { credential, scope, runner: { name } }: RemoveRegistrationInput,
  id: string,
  isOwn: boolean,
): Promise<'removed' | 'absent'> {
  const signal = cancellationSignal();
  if (!isOwn && !isKnownOwned({ credential, scope, name }, id)) {
    if (parseRunnerNameHash(name) === undefined)
      throw applicationFailure(notByName(name), FAILURE_TYPES.foreignRegistration, { final: true });
    // The ID is that of another runner.
    if ((await scaleSets.runnerId(scope, name, signal)) !== id) return 'absent';
  }
  return await scaleSets.removeRunner(scope, id, signal);
}
