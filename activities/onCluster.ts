import { refusal } from './refusals.ts';
import { withHeartbeats } from './heartbeats.ts';

/** The pace of compute failures has no credential in it. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

/** Runs a call that needs only the cluster: with heartbeats, its errors as Temporal failures. @param details - for the operator */
export async function onCluster<T>(details: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withHeartbeats(details, run);
  } catch (error) {
    throw refusal(error, NO_CREDENTIALS, false);
  }
}
