/**
 * Parses the events that steps send to their job. Anyone who may send a signal can send any body,
 * so invalid events are dropped. Pure.
 */
import {
  RUNNER_CAUSES,
  RUNNER_OUTCOMES,
  type StepEndedEvent,
  type StepPodCreatedEvent,
} from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/**
 * Maximum number of attempts of a runner (`maxAttempts`). The store is searched for the files of
 * each attempt, so the number must not be arbitrary.
 */
const MAX_ATTEMPTS = 1_000;

/**
 * Parses the event that a step has a pod.
 *
 * @returns `undefined` if the body is not such an event
 */
export function parseStepPodCreated(body: unknown): StepPodCreatedEvent | undefined {
  if (!isObject(body)) return undefined;
  const { workflowId, pod } = body;
  return typeof workflowId === 'string' && typeof pod === 'string'
    ? { workflowId, pod }
    : undefined;
}

/**
 * Parses the event that a step has ended.
 *
 * @returns `undefined` if the body is not such an event
 */
export function parseStepEnded(body: unknown): StepEndedEvent | undefined {
  if (!isObject(body)) return undefined;
  const { workflowId, firstRunId, message, attempt, exitCode } = body;
  const outcome = RUNNER_OUTCOMES.find((known) => known === body['outcome']);
  const cause = RUNNER_CAUSES.find((known) => known === body['cause']);
  if (outcome === undefined || typeof message !== 'string') return undefined;
  if (typeof workflowId !== 'string' || typeof firstRunId !== 'string') return undefined;
  if (!isWhole(attempt) || attempt < 0 || attempt > MAX_ATTEMPTS) return undefined;
  return {
    workflowId,
    firstRunId,
    outcome,
    message,
    attempt,
    ...omitUndefined({ cause, exitCode: isWhole(exitCode) ? exitCode : undefined }),
  };
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);
