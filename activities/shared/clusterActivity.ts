import { FAILURE_TYPES, type Placed } from '../../core/activities/index.ts';
import { placeName, serves } from '../../core/domain/location.ts';
import { doubled, failure } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';
import { finalWhenOutOfTime } from './deadline.ts';
import type { ActivityPorts } from '../ports.ts';
import { countOf, refusal } from './rejections.ts';

/** The pace of compute failures has no credential in it. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

/** A worker of the right place may take the next try: soon, and ever less often while there is none, lest thousands of lives ask in vain. */
const WRONG_PLACE_RETRY_MS = { first: 500, longest: 10_000 } as const;

/**
 * Runs a call that needs only the cluster: with heartbeats, its errors as Temporal failures. What the cluster refuses is asked for again, for as
 * long as the call may take. @param details - for the operator
 */
export async function onCluster<T>(details: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withHeartbeats(details, run);
  } catch (error) {
    throw finalWhenOutOfTime(refusal(error, NO_CREDENTIALS, false));
  }
}

/**
 * The activity, for lives of this worker's place only: what is not found elsewhere has not ended.
 * @throws ApplicationFailure `WrongPlace`, until a worker of the right place takes it
 */
export function inItsPlace<I, O>(
  ports: ActivityPorts,
  activity: (ports: ActivityPorts, input: I) => Promise<O>,
): (input: Placed<I>) => Promise<O> {
  return async (input) => {
    const served = await onCluster('which place is this?', async () => await ports.compute.place());
    if (serves(served, input.place)) return await activity(ports, input);
    throw failure(
      `This runner's pods are in ${placeName(input.place)}, and this worker's in ${placeName(served)}: run a worker with the settings of the former, and give this one a task queue of its own`,
      FAILURE_TYPES.wrongPlace,
      {
        nextRetryDelayMs: doubled(
          WRONG_PLACE_RETRY_MS.first,
          countOf(FAILURE_TYPES.wrongPlace),
          WRONG_PLACE_RETRY_MS.longest,
        ),
      },
    );
  };
}
