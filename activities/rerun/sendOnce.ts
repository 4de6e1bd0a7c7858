import { activityInfo } from '@temporalio/activity';
import { CiServerError } from '../ports/ciServerError.ts';
import { changeHeartbeatDetails, heartbeatDetails } from '../shared/heartbeats.ts';

/**
 * REQUESTS THAT MUST NOT BE REPEATED (a rerun, a force-cancel).
 *
 * What: each attempt of the activity knows whether an earlier one may have sent the request
 * ({@link mayBeSent}).
 *
 * Why: the response may be lost, or the worker killed after the request. The effect of the request
 * then looks like that of another client.
 *
 * If it fails: heartbeats are sent with a delay, so a worker that is killed leaves no note. Without
 * a note, every attempt but the first assumes that the request was sent. So an attempt that fails
 * before the request says so ({@link beforeRequest}).
 */

/** Whether an earlier attempt of this activity may have sent the request. */
export function mayBeSent(): boolean {
  return activityInfo().attempt > 1 && heartbeatDetails().unanswered !== false;
}

/**
 * Runs what precedes the request. If the first attempt fails here, the next one knows that nothing
 * was sent.
 */
export async function beforeRequest<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (activityInfo().attempt === 1) changeHeartbeatDetails({ unanswered: false });
    throw error;
  }
}

/** Sends the request. The next attempt knows whether a response to it is known. */
export async function sendOnce(send: () => Promise<void>): Promise<void> {
  changeHeartbeatDetails({ unanswered: true });
  try {
    await send();
  } catch (error) {
    const isAnswered = error instanceof CiServerError && error.kind !== 'unavailable';
    if (isAnswered) changeHeartbeatDetails({ unanswered: false });
    throw error;
  }
}
