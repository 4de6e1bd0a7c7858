import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { nonRetryableAfterDeadline } from '../shared/deadline.ts';
import { exponentialBackoff, applicationFailure } from '../shared/failures.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { countRejection, rejection } from '../shared/rejections.ts';
import {
  FAILURE_TYPES,
  type AwaitRunnerOnlineInput,
  type OnlineRunner,
} from '../../core/activities/index.ts';

/** Maximum interval between two requests (ms). */
const MAX_INTERVAL_MS = 30_000;

/**
 * Waits until the CI server lists the runner as online. Each attempt sends one request. The retries
 * of the activity are the wait, so they add no events to the history. The first attempt sends
 * nothing: a runner needs a moment to come online, and a request that must fail would only use up
 * the rate limit.
 * @throws ApplicationFailure `RunnerNotOnlineYet`, which is retried, while the runner is not online
 */
export async function awaitRunnerOnline(
  { ciServers }: ActivityPorts,
  input: AwaitRunnerOnlineInput,
): Promise<OnlineRunner> {
  const { intervalMs, runner } = input;
  if (activityInfo().attempt === 1)
    throw notOnlineFailure(`${runner.name} was given ${intervalMs} ms to start`, intervalMs);
  let found;
  try {
    found = await ciServers
      .get(input.credential)
      .findRunner(input.scope, runner, cancellationSignal());
  } catch (error) {
    throw nonRetryableAfterDeadline(rejection(error, input, { isFinal: false }));
  }
  if (found?.online !== true) {
    const nextRetryDelayMs = exponentialBackoff(
      intervalMs,
      countRejection(FAILURE_TYPES.notOnline),
      MAX_INTERVAL_MS,
    );
    throw notOnlineFailure(
      `${runner.name} is ${found === undefined ? 'not registered' : 'offline'} at the CI server`,
      nextRetryDelayMs,
    );
  }
  return { runnerId: found.id, busy: found.busy };
}

function notOnlineFailure(message: string, nextRetryDelayMs: number): unknown {
  return nonRetryableAfterDeadline(
    applicationFailure(message, FAILURE_TYPES.notOnline, { nextRetryDelayMs, expected: true }),
  );
}
