/**
 * The steps of one CI job, whose events come late, twice and out of order: what is known of it is the furthest step that it can have taken,
 * not the event that arrived last. Keyed by job and attempt; never counted first in, first out. Pure.
 */
import type { JobEvent } from '../contract/index.ts';

/**
 * `queued`: waits for a runner. `left`: waits no longer, by a look at the CI server; no event has said yet where it went.
 * `assigned`: runs on a runner. `completed`: over, whatever its conclusion.
 */
export type CiJobState = 'queued' | 'left' | 'assigned' | 'completed';

const STEP: Readonly<Record<CiJobState, number>> = {
  queued: 0,
  left: 1,
  assigned: 2,
  completed: 3,
};
const STATE_OF: Readonly<Record<JobEvent['action'], CiJobState>> = {
  queued: 'queued',
  in_progress: 'assigned',
  completed: 'completed',
};

/** A job of a workflow run's attempt: a re-run is another job. */
export function jobKey({ jobId, runAttempt }: Pick<JobEvent, 'jobId' | 'runAttempt'>): string {
  return `${jobId}/${runAttempt}`;
}

/** Returns the job that {@link jobKey} made this key of. */
export function parseJobKey(key: string): Pick<JobEvent, 'jobId' | 'runAttempt'> {
  const slash = key.lastIndexOf('/');
  return { jobId: key.slice(0, slash), runAttempt: Number(key.slice(slash + 1)) };
}

/** The state that an event tells of. */
export function ciJobStateOf({ action }: Pick<JobEvent, 'action'>): CiJobState {
  return STATE_OF[action];
}

/** Is this a step beyond what is known? @param known - `undefined`: nothing */
export function isLaterState(state: CiJobState, known: CiJobState | undefined): boolean {
  return known === undefined || STEP[state] > STEP[known];
}
