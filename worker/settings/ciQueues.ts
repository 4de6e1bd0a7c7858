/** Limits of the task queues on which the calls of each credential run. */
import { pointsPerMinute, type Credentials } from '../../activities/ciServers/credentials.ts';

/** Limits of the task queue of a CI server's credential. */
export interface CiQueue {
  /** Name of the credential. */
  readonly credential: string;
  /**
   * Maximum activities per second that the Temporal server dispatches to all workers together. Set
   * the same on every worker.
   * @default no limit
   */
  readonly maxPerSecond?: number;
  /**
   * Maximum concurrent activities in this process. GitHub rejects more than 100 concurrent
   * requests.
   * @default 90
   */
  readonly concurrency?: number;
}

/** A write costs 5 points at GitHub, and nearly all requests for runners are writes. */
const POINTS_PER_WRITE = 5;

/**
 * Returns the limits for each credential. The rate of its task queue is what its server allows, for
 * all workers together, so that thousands of starts wait in the queue and cause no errors. At most
 * 90 requests are sent at once, because GitHub rejects the 101st.
 */
export function ciQueuesOf(credentials: Credentials): CiQueue[] {
  return Object.entries(credentials).map(([name, credential]) => {
    const points = pointsPerMinute(credential);
    const queue = { credential: name, concurrency: Math.min(90, credential.maxInFlight) };
    return points === undefined
      ? queue
      : { ...queue, maxPerSecond: points / POINTS_PER_WRITE / 60 };
  });
}
