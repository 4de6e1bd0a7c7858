/**
 * States of one CI job. Its events may arrive late, twice and out of order, so the known state is
 * the latest one that any event reported, not that of the last event. Jobs are identified by job
 * and attempt and never counted first in, first out. Pure.
 */
import type { JobEvent } from '../contract/index.ts';

/**
 * State of a job. `queued`: it waits for a runner. `left`: a check of the CI server found that it
 * does not wait any more, but no event has reported why. `assigned`: it runs on a runner.
 * `completed`: it is over, with any conclusion.
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

/** Returns the key of a job in an attempt of a workflow run. A re-run is another job. */
export function jobKey({ jobId, runAttempt }: Pick<JobEvent, 'jobId' | 'runAttempt'>): string {
  return `${jobId}/${runAttempt}`;
}

/** Parses a key of {@link jobKey}. */
export function parseJobKey(key: string): Pick<JobEvent, 'jobId' | 'runAttempt'> {
  const slash = key.lastIndexOf('/');
  return { jobId: key.slice(0, slash), runAttempt: Number(key.slice(slash + 1)) };
}

/** Returns the state that an event reports. */
export function ciJobStateOf({ action }: Pick<JobEvent, 'action'>): CiJobState {
  return STATE_OF[action];
}

/**
 * Whether a state is later than the known state.
 * @param known - `undefined` if no state is known
 */
export function isLaterState(state: CiJobState, known: CiJobState | undefined): boolean {
  return known === undefined || STEP[state] > STEP[known];
}
