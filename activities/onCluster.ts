import { withHeartbeats } from './heartbeats.ts';
import { finalWhenOutOfTime } from './outOfTime.ts';
import { refusal } from './refusals.ts';

/** The pace of compute failures has no credential in it. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

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
