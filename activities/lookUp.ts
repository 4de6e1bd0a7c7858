import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { lastTry } from './lastTry.ts';
import { FAILURE_TYPES, failure, toFailure } from './failures.ts';
import type { ActivityPorts, Scope } from './ports.ts';

export interface LookUpInput {
  readonly scope: Scope;
  readonly credential: string;
  readonly runner: { readonly id?: number; readonly name: string };
  /** First delay between two looks; doubles up to 30 s. */
  readonly intervalMs: number;
  readonly credentialsRetryMs: number;
}

/** A runner seen online at the CI server. */
export interface Sighting {
  readonly runnerId: number;
  readonly busy: boolean;
}

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
    throw lastTry(toFailure(error, input, false));
  }
  if (found?.online !== true) {
    throw notOnline(`${input.runner.name} is ${found === undefined ? 'not registered' : 'offline'} at the CI server`, nextRetryDelayMs);
  }
  return { runnerId: found.id, busy: found.busy };
}

function notOnline(message: string, nextRetryDelayMs: number): unknown {
  return lastTry(failure(message, FAILURE_TYPES.notOnline, { nextRetryDelayMs, expected: true }));
}
