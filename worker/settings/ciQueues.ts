/** From credentials to the task queues that their calls run on. */
import { pointsPerMinute, type Credentials } from '../../activities/ciServers/credentials.ts';

/** A CI server's credential, as far as its task queue is concerned. */
export interface CiQueue {
  /** Name of the credential. */
  readonly credential: string;
  /** Activities a second that the Temporal server hands out over all workers; absent: no limit. Set the same on every worker. */
  readonly maxPerSecond?: number;
  /** Activities at once in this process. @default 90 (GitHub refuses more than 100 concurrent requests) */
  readonly concurrency?: number;
}

/** A write costs 5 of GitHub's points, and nearly all that runners ask for are writes. */
const POINTS_PER_WRITE = 5;

/**
 * The task queue of each credential is limited to the pace that its server allows, over all workers: a scale-up of thousands becomes
 * a queue, not errors. Never more than 90 at once in one process: GitHub refuses the 101st request.
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
