/** What runners tell their set. Whoever may send a signal can send anything: what is no news is left out, because what a set cannot read would stop it for good. Pure. */
import {
  RUNNER_CAUSES,
  RUNNER_OUTCOMES,
  type TimedRunnerEvent,
} from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import type { SetState } from './state.ts';

/** The news of a signal, the earliest first. */
export function parseRunnerEvents(body: unknown): TimedRunnerEvent[] {
  const news = isObject(body) && Array.isArray(body['news']) ? body['news'] : [];
  return news.filter(isRunnerEvent).toSorted((a, b) => a.at - b.at);
}

function isRunnerEvent(news: unknown): news is TimedRunnerEvent {
  if (!isObject(news)) return false;
  const { kind, workflowId, runnerName, at } = news;
  if (typeof workflowId !== 'string' || typeof runnerName !== 'string' || !Number.isFinite(at))
    return false;
  return kind === 'online' || kind === 'busy' || (kind === 'ended' && isEndedEvent(news));
}

function isEndedEvent({ outcome, cause, wasOnline, ranJob }: Record<string, unknown>): boolean {
  const known = (names: readonly string[], name: unknown): boolean =>
    names.some((one) => one === name);
  return (
    known(RUNNER_OUTCOMES, outcome) &&
    (cause === undefined || known(RUNNER_CAUSES, cause)) &&
    typeof wasOnline === 'boolean' &&
    typeof ranJob === 'boolean'
  );
}

export function applyRunnerEvents(
  state: SetState,
  news: readonly TimedRunnerEvent[],
  now: number,
): void {
  for (const one of news) {
    if (one.kind === 'ended') state.onRunnerEnded(one, now);
    else if (one.kind === 'online') state.onRunnerOnline(one, now);
    else state.onRunnerBusy(one, now);
  }
}
