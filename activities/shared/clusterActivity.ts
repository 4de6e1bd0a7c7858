import { FAILURE_TYPES, type WithLocation } from '../../core/activities/index.ts';
import { formatLocation, servesLocation, type Location } from '../../core/domain/location.ts';
import { exponentialBackoff, applicationFailure } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';
import { nonRetryableAfterDeadline } from './deadline.ts';
import type { ActivityPorts } from '../ports.ts';
import { countRejection, refusal } from './rejections.ts';

/** The pace of compute failures has no credential in it. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

/** A worker of the right place may take the next try: soon, and ever less often while there is none, lest thousands of lives ask in vain. */
const WRONG_PLACE_RETRY_MS = { first: 500, longest: 10_000 } as const;

/**
 * Runs a call that needs only the cluster: with heartbeats, its errors as Temporal failures. What the cluster refuses is asked for again, for as
 * long as the call may take. @param details - for the operator
 */
export async function withClusterErrors<T>(details: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withHeartbeats(details, run);
  } catch (error) {
    throw nonRetryableAfterDeadline(refusal(error, NO_CREDENTIALS, false));
  }
}

/**
 * The activity, for lives of this worker's place only: what is not found elsewhere has not ended.
 * @throws ApplicationFailure `WrongLocation`, until a worker of the right place takes it
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

/** @throws ApplicationFailure `WrongLocation`: the pods of that place are another worker's to look after */
export async function assertServed(
  { compute }: Pick<ActivityPorts, 'compute'>,
  location: Location,
): Promise<void> {
  const served = await withClusterErrors('read the location', async () => await compute.location());
  if (servesLocation(served, location)) return;
  throw applicationFailure(
    `This runner's pods are in ${formatLocation(location)}, and this worker's in ${formatLocation(served)}: run a worker with the settings of the former, and give this one a task queue of its own`,
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
