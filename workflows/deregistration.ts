import { ApplicationFailure, setCurrentDetails, sleep } from '@temporalio/workflow';
import { admissionActivities, ciActivities, toCallResult } from './shared/activityProxies.ts';
import { FAILURE_TYPES } from '../core/activities/index.ts';
import type { DeregistrationInput, DeregistrationResult } from '../core/contract/index.ts';
import { escapeMarkdown } from '../core/domain/displayText.ts';
import { formatDuration } from '../core/domain/duration.ts';
import { omitUndefined } from '../core/domain/omitUndefined.ts';
import { countDeregistration } from './shared/metrics.ts';

/**
 * Maximum delay between two attempts, as a multiple of the initial delay. CI servers release a
 * runner that died with its job after minutes, sometimes hours.
 */
const MAX_RETRY_FACTOR = 15;

/**
 * Removes the registration of a runner that no longer exists, long after its own workflow has
 * ended: at intervals from 1 minute to 15 minutes, for 24 hours. A registration that still exists
 * then is reported as dangling.
 */
export async function deregistration(input: DeregistrationInput): Promise<DeregistrationResult> {
  const { scope, credential, runner, inScaleSet, reason, timeoutMs, initialRetryIntervalMs } =
    await admissionActivities().admitDeregistration({ input });
  const { name } = runner;
  setCurrentDetails(`Removing the registration of **${name}**: ${reason}`);
  const { removeRegistration } = ciActivities(credential, scope, 'remove', {
    summary: 'Unregister (retried while busy)',
    withinMs: timeoutMs,
  });
  const remove = async () =>
    await toCallResult(
      removeRegistration({
        scope,
        credential,
        runner,
        ...omitUndefined({ inScaleSet }),
        onBusy: 'retry',
        busyRetryMs: initialRetryIntervalMs,
        maxBusyRetryMs: initialRetryIntervalMs * MAX_RETRY_FACTOR,
        credentialsRetryMs: initialRetryIntervalMs * 5,
      }),
    );
  let called = await remove();
  if (called.kind === 'done' && called.value.result === 'unlisted') {
    await sleep(initialRetryIntervalMs, {
      summary: 'Retry: lists may be a minute old',
    });
    called = await remove();
  }
  if (called.kind === 'done') {
    const { result, attempts } = called.value;
    const outcome = result === 'removed' ? 'removed' : 'absent';
    countDeregistration(outcome);
    return ended({ outcome, attempts, message: `The registration of ${name} is ${outcome}.` });
  }
  if (called.kind === 'failed' && called.type === FAILURE_TYPES.foreignRegistration)
    throw ApplicationFailure.nonRetryable(called.message, called.type);
  if (called.kind === 'interrupted')
    throw ApplicationFailure.nonRetryable('The removal was cancelled', 'Cancelled');
  countDeregistration('dangling');
  return ended({
    outcome: 'dangling',
    message: `The registration of ${name} could not be removed within ${formatDuration(timeoutMs)}: ${called.message}`,
  });
}

/** Publishes the result in the UI and returns it. */
function ended(result: DeregistrationResult): DeregistrationResult {
  setCurrentDetails(escapeMarkdown(result.message));
  return result;
}
