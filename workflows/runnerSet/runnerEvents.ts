/**
 * Events from runners to their set. Anyone who may send a signal can send any body, so invalid
 * events are dropped: an error would block the set permanently. Pure.
 */
import {
  RUNNER_CAUSES,
  RUNNER_OUTCOMES,
  type TimedRunnerEvent,
} from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
import type { SetState } from './state.ts';

/** Maximum length of a runner's message (characters). The set keeps the last message. */
const MAX_MESSAGE = 500;

/** Parses the events of a signal, earliest first. */
export function parseRunnerEvents(body: unknown): TimedRunnerEvent[] {
  const events = isObject(body) && Array.isArray(body['events']) ? body['events'] : [];
  return events.filter(isRunnerEvent).toSorted((a, b) => a.at - b.at);
}

function isRunnerEvent(event: unknown): event is TimedRunnerEvent {
  if (!isObject(event)) return false;
  const { kind, workflowId, runnerName, at } = event;
  if (typeof workflowId !== 'string' || typeof runnerName !== 'string' || !isTime(at)) return false;
  return kind === 'online' || kind === 'busy' || (kind === 'ended' && isEndedEvent(event));
}

function isEndedEvent({
  outcome,
  cause,
  wasOnline,
  ranJob,
  message = '',
}: Record<string, unknown>): boolean {
  const known = (names: readonly string[], name: unknown): boolean =>
    names.some((one) => one === name);
  return (
    known(RUNNER_OUTCOMES, outcome) &&
    (cause === undefined || known(RUNNER_CAUSES, cause)) &&
    typeof wasOnline === 'boolean' &&
    typeof ranJob === 'boolean' &&
    typeof message === 'string' &&
    message.length <= MAX_MESSAGE
  );
}

/**
 * Applies runner events to the state of a set, in their order.
 * @param now - the set's clock (ms since the epoch)
 */
export function applyRunnerEvents(
  state: SetState,
  events: readonly TimedRunnerEvent[],
  now: number,
): void {
  for (const event of events) {
    if (event.kind === 'ended') state.onRunnerEnded(event, now);
    else if (event.kind === 'online') state.onRunnerOnline(event, now);
    else state.onRunnerBusy(event, now);
  }
}
