import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { finalWhenOutOfTime } from '../shared/deadline.ts';
import { doubled, failure } from '../shared/failures.ts';
import type { ActivityPorts } from '../ports.ts';
import { countOf, refusal } from '../shared/rejections.ts';
import { FAILURE_TYPES, type LookUpInput, type Sighting } from '../../core/activities/index.ts';

const MAX_INTERVAL_MS = 30_000;

/**
 * One look per attempt; the retries are the waiting, so they cost no history. The first attempt asks nothing: a runner needs a
 * moment to come online, and a request that must fail would only burn the rate limit.
 */
export async function lookUpRunner(
  { ciServers }: ActivityPorts,
  input: LookUpInput,
): Promise<Sighting> {
  const { intervalMs, runner } = input;
  if (activityInfo().attempt === 1)
    throw notOnline(`${runner.name} was given ${intervalMs} ms to start`, intervalMs);
  let found;
  try {
    found = await ciServers.get(input.credential).find(input.scope, runner, cancellationSignal());
  } catch (error) {
    throw finalWhenOutOfTime(refusal(error, input, false));
  }
  if (found?.online !== true) {
    const nextRetryDelayMs = doubled(intervalMs, countOf(FAILURE_TYPES.notOnline), MAX_INTERVAL_MS);
    throw notOnline(
      `${runner.name} is ${found === undefined ? 'not registered' : 'offline'} at the CI server`,
      nextRetryDelayMs,
    );
  }
  return { runnerId: found.id, busy: found.busy };
}

function notOnline(message: string, nextRetryDelayMs: number): unknown {
  return finalWhenOutOfTime(
    failure(message, FAILURE_TYPES.notOnline, { nextRetryDelayMs, expected: true }),
  );
}
