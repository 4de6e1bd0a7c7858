import { activityInfo, heartbeat } from '@temporalio/activity';

/**
 * Runs a short activity with heartbeats, so that a worker that dies under it costs its heartbeat timeout and not its whole
 * start-to-close timeout. The first beat comes after one interval: an activity that is done by then costs no request.
 * @param details - what an operator sees of the pending activity in the Temporal UI
 */
export async function withHeartbeats<T>(details: string, run: () => Promise<T>): Promise<T> {
  const timeoutMs = activityInfo().heartbeatTimeoutMs;
  if (timeoutMs === undefined || timeoutMs <= 0) return await run();
  const timer = setInterval(() => heartbeat(details), timeoutMs / 3);
  try {
    return await run();
  } finally {
    clearInterval(timer);
  }
}
