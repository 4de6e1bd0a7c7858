import { Context, activityInfo, heartbeat } from '@temporalio/activity';

/**
 * Heartbeat details: progress shown to operators, and the only state that an attempt passes to the
 * next one.
 */
export interface HeartbeatDetails {
  readonly progress?: string;
  /** Number of rejections of the activity by reason. */
  readonly rejections: Readonly<Record<string, number>>;
  /** Whether a request that must not be repeated was sent, and no response to it is known. */
  readonly unanswered?: boolean;
}

/** Details of attempts that have changed them. */
const changed = new WeakMap<Context, HeartbeatDetails>();

/** Returns the details of this attempt, which begin as those of the previous one. */
export function heartbeatDetails(): HeartbeatDetails {
  const previous = activityInfo().heartbeatDetails as HeartbeatDetails | undefined;
  return changed.get(Context.current()) ?? { rejections: {}, ...previous };
}

/** Changes the details, and sends them. */
export function changeHeartbeatDetails(more: Partial<HeartbeatDetails>): void {
  const details = { ...heartbeatDetails(), ...more };
  changed.set(Context.current(), details);
  heartbeat(details);
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
  const beat = (): void =>
    changeHeartbeatDetails({ progress: typeof doing === 'string' ? doing : doing() });
  const timer = setInterval(beat, timeoutMs / 3);
  try {
    return await run();
  } finally {
    clearInterval(timer);
  }
}
