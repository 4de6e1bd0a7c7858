import { activityInfo, heartbeat } from '@temporalio/activity';

/**
 * Heartbeat details: progress shown to operators, and the only state that an attempt passes to the
 * next one.
 */
export interface HeartbeatDetails {
  readonly progress?: string;
  /** Number of rejections of the activity by reason. */
  readonly rejections: Readonly<Record<string, number>>;
}

/** Returns the number of rejections by reason of all earlier attempts. */
export function previousRejections(): HeartbeatDetails['rejections'] {
  return (activityInfo().heartbeatDetails as HeartbeatDetails | undefined)?.rejections ?? {};
}

/**
 * Runs a short activity with heartbeats, so that the failure of its worker costs the heartbeat
 * timeout and not the whole start-to-close timeout. The first heartbeat is sent after one interval,
 * so an activity that is done by then costs no request.
 * @param doing - description of the current work, shown for the pending activity in the Temporal
 * UI. A function is called at each heartbeat
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
