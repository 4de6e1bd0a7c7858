import { FAILURE_TYPES, type WithLocation } from '../../core/activities/index.ts';
import {
  formatLocation,
  formatServedLocation,
  servesLocation,
  type Location,
} from '../../core/domain/location.ts';
import { exponentialBackoff, applicationFailure } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';
import { nonRetryableAfterDeadline } from './deadline.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { countRejection, rejection } from './rejections.ts';

/** Retry delays of compute failures. No credential is involved. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

/**
 * Retry interval for runners of another location (ms). A worker of the right location may take the
 * next attempt. The interval starts short and doubles, so that thousands of runners do not retry in
 * vain.
 */
const WRONG_PLACE_RETRY_MS = { first: 500, longest: 10_000 } as const;

/**
 * Runs a call that needs only the cluster, with heartbeats, and maps its errors to Temporal
 * failures. Rejections by the cluster are retried until the schedule-to-close timeout of the
 * activity.
 * @param details - heartbeat details, shown to operators
 */
export async function withClusterErrors<T>(details: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withHeartbeats(details, run);
  } catch (error) {
    throw nonRetryableAfterDeadline(rejection(error, NO_CREDENTIALS, { isFinal: false }));
  }
}

/**
 * Restricts an activity to runners of this worker's location. A pod that is not found in another
 * location has not ended.
 * @throws ApplicationFailure `WrongLocation`, which is retried until a worker of the right location
 * takes the activity
 */
export function requireLocation<I, O>(
  ports: ActivityPorts,
  activity: (ports: ActivityPorts, input: I) => Promise<O>,
): (input: WithLocation<I>) => Promise<O> {
  return async (input) => {
    await assertServed(ports, input.location);
    return await activity(ports, input);
  };
}

/**
 * Verifies that this worker serves the location.
 * @throws ApplicationFailure `WrongLocation` if another worker is responsible for the pods of that
 * location
 */
export async function assertServed(
  { compute }: Pick<ActivityPorts, 'compute'>,
  location: Location,
): Promise<void> {
  const served = await withClusterErrors('read the location', async () => await compute.location());
  if (servesLocation(served, location)) return;
  throw applicationFailure(
    `the pods of this runner are in ${formatLocation(location)}, and those of this worker in ${formatServedLocation(served)}; run a worker with the settings of the former, and give this one a separate task queue`,
    FAILURE_TYPES.wrongLocation,
    {
      nextRetryDelayMs: exponentialBackoff(
        WRONG_PLACE_RETRY_MS.first,
        countRejection(FAILURE_TYPES.wrongLocation),
        WRONG_PLACE_RETRY_MS.longest,
      ),
    },
  );
}
