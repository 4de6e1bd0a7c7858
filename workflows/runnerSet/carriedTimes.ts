/**
 * Limits the times that a previous run of a set carried over, which anyone may have written. A time
 * of the future would make the set wait for it, or ignore everything before it, permanently. Pure.
 */
import { limitTime, isTime } from '../../core/domain/isTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import type { SetHealth } from './breaker.ts';
import type { CarriedSetState } from './carriedState.ts';

type CarriedFacts = CarriedSetState['facts'];

/** Times at which something has happened. */
const PAST = ['listStartedAt', 'lastJobEventAt', 'queueCheckStartedAt', 'checkedAt'] as const;

/**
 * Returns the facts with limited times. Invalid times become the latest plausible ones.
 * @param now - the set's clock (ms since the epoch)
 */
export function limitCarriedTimes(
  facts: CarriedFacts,
  { rerouteMs, relistMs, maxRetryMs }: SetSpec,
  now: number,
): CarriedFacts {
  const { health, incomplete, time, rerouteAt, availableAt } = facts;
  const limited = (at: unknown, limit: number): number | undefined =>
    at === undefined ? undefined : limitTime(at, limit);
  return {
    ...facts,
    ...omitUndefined({
      ...Object.fromEntries(PAST.map((field) => [field, limited(facts[field], now)])),
      rerouteAt: limited(rerouteAt, now + Math.max(rerouteMs, relistMs)),
      availableAt: limited(availableAt, now + rerouteMs),
      incomplete: incomplete && limitIncomplete(incomplete, now),
      time: time && { ...time, at: limitTime(time.at, now) },
    }),
    health: limitHealth(health, now, maxRetryMs),
    peaks: facts.peaks.map(([until, runners]) => [limitTime(until, now), runners]),
  };
}

function limitHealth(health: SetHealth, now: number, maxRetryMs: number): SetHealth {
  const { failedAt, openedAt, nextTryAt, last } = health;
  return {
    ...health,
    ...omitUndefined({
      failedAt: failedAt === undefined ? undefined : limitTime(failedAt, now),
      openedAt: openedAt === undefined ? undefined : limitTime(openedAt, now),
      nextTryAt: nextTryAt === undefined ? undefined : limitTime(nextTryAt, now + maxRetryMs),
      last: last && { ...last, at: limitTime(last.at, now) },
    }),
  };
}

function limitIncomplete(
  { since, budgetUntil, ...rest }: NonNullable<CarriedFacts['incomplete']>,
  now: number,
): NonNullable<CarriedFacts['incomplete']> {
  return {
    ...rest,
    since: limitTime(since, now),
    ...(isTime(budgetUntil) ? { budgetUntil } : {}),
  };
}
