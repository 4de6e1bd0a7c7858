import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { finalWhenOutOfTime } from './outOfTime.ts';
import { failure, toFailure } from './failures.ts';
import type { ActivityPorts } from './ports.ts';
import { FAILURE_TYPES, type LookUpInput, type Sighting } from '../core/calls/index.ts';

const MAX_INTERVAL_MS = 30_000;

/**
 * One look per attempt; the retries are the waiting, so they cost no history. The first attempt asks nothing: a runner needs a
 * moment to come online, and a request that must fail would only burn the rate limit.
 */
export async function lookUpRunner({ ciServers }: ActivityPorts, input: LookUpInput): Promise<Sighting> {
  const { attempt } = activityInfo();
  const nextRetryDelayMs = Math.min(input.intervalMs * 2 ** Math.max(0, attempt - 2), Math.max(MAX_INTERVAL_MS, input.intervalMs));
  if (attempt === 1) throw notOnline(`${input.runner.name} was given ${nextRetryDelayMs} ms to start`, nextRetryDelayMs);
  let found;
  try {
    found = await ciServers.get(input.credential).find(input.scope, input.runner, cancellationSignal());
  } catch (error) {
    throw finalWhenOutOfTime(toFailure(error, input, false));
  }
  if (found?.online !== true) {
    throw notOnline(`${input.runner.name} is ${found === undefined ? 'not registered' : 'offline'} at the CI server`, nextRetryDelayMs);
  }
  return { runnerId: found.id, busy: found.busy };
}

function notOnline(message: string, nextRetryDelayMs: number): unknown {
  return finalWhenOutOfTime(failure(message, FAILURE_TYPES.notOnline, { nextRetryDelayMs, expected: true }));
}
