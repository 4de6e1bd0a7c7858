import { activityInfo, heartbeat } from '@temporalio/activity';

/** Heartbeat details: what an operator sees of a pending activity, and all that a try leaves to the next one. */
export interface HeartbeatDetails {
  readonly progress?: string;
  /** How often each reason has refused the activity. */
  readonly rejections: Readonly<Record<string, number>>;
}

/** How often each reason refused the tries before this one. */
export function previousRejections(): HeartbeatDetails['rejections'] {
  return (activityInfo().heartbeatDetails as HeartbeatDetails | undefined)?.rejections ?? {};
}

/**
 * Runs a short activity with heartbeats, so that a worker that dies under it costs its heartbeat timeout and not its whole
 * start-to-close timeout. The first beat comes after one interval: an activity that is done by then costs no request.
 * @param doing - what an operator sees of the pending activity in the Temporal UI; a function tells what it is just now
 */
export async function withHeartbeats<T>(
  doing: string | (() => string),
  run: () => Promise<T>,
): Promise<T> {
  const timeoutMs = activityInfo().heartbeatTimeoutMs;
  if (timeoutMs === undefined || timeoutMs <= 0) return await run();
  const rejections = previousRejections();
  const beat = (): void =>
    heartbeat({
      progress: typeof doing === 'string' ? doing : doing(),
      rejections,
    } satisfies HeartbeatDetails);
  const timer = setInterval(beat, timeoutMs / 3);
  try {
    return await run();
  } finally {
    clearInterval(timer);
  }
}
