import type { QueueCheckStatus } from '../contract/index.ts';
import { omitUndefined } from './omitUndefined.ts';

const REASONS: Readonly<Record<QueueCheckStatus['reason'], string>> = {
  budget: 'the request budget for checks is spent',
  failed: 'the last check failed',
  partial: 'not all jobs of the scope can be listed',
  unsupported: 'the CI server has no list of jobs for this scope, so sets depend on the webhook',
};

/**
 * Returns one line about a set's checks of queued jobs, or `undefined` if the last one was
 * complete.
 */
export function queueCheckText(status: QueueCheckStatus | undefined): string | undefined {
  if (status === undefined) return undefined;
  const { reason, incompleteSince, budgetUntil, message } = omitUndefined(status);
  const until = budgetUntil === undefined ? '' : ` until ${budgetUntil}`;
  const detail = message === undefined ? '' : `: ${message}`;
  return `incomplete since ${incompleteSince}: ${REASONS[reason]}${until}${detail}`;
}
