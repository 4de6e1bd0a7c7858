/** What steps tell their job. Whoever may send a signal can send anything: what is no such news is left out. Pure. */
import {
  RUNNER_CAUSES,
  RUNNER_OUTCOMES,
  type StepEndedEvent,
  type StepPodCreatedEvent,
} from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** No runner may have more attempts (`maxAttempts`). What each may have left is looked for, so the number must not be anybody's. */
const MAX_ATTEMPTS = 1_000;

/** @returns `undefined`: it is no news of a pod */
export function parseStepPodCreated(body: unknown): StepPodCreatedEvent | undefined {
  if (!isObject(body)) return undefined;
  const { workflowId, pod } = body;
  return typeof workflowId === 'string' && typeof pod === 'string'
    ? { workflowId, pod }
    : undefined;
}

/** @returns `undefined`: it is no news of an end */
export function parseStepEnded(body: unknown): StepEndedEvent | undefined {
  if (!isObject(body)) return undefined;
  const { workflowId, message, attempt, exitCode } = body;
  const outcome = RUNNER_OUTCOMES.find((known) => known === body['outcome']);
  const cause = RUNNER_CAUSES.find((known) => known === body['cause']);
  if (outcome === undefined || typeof workflowId !== 'string' || typeof message !== 'string')
    return undefined;
  if (!isWhole(attempt) || attempt < 0 || attempt > MAX_ATTEMPTS) return undefined;
  return {
    workflowId,
    outcome,
    message,
    attempt,
    ...omitUndefined({ cause, exitCode: isWhole(exitCode) ? exitCode : undefined }),
  };
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);
