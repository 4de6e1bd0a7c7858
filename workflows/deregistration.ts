import { ApplicationFailure, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { HoldfastActivities } from '../core/calls/index.ts';
import { admission, settle } from './calls.ts';
import { ciTaskQueue, type DeregistrationInput, type DeregistrationResult } from '../core/contract/index.ts';
import { formatDuration } from '../core/domain/duration.ts';

/** GitHub frees a runner that died with its job in 10 to 15 minutes, sometimes in hours. */
const LONGEST_RETRY_FACTOR = 15;

/**
 * Goes on removing the registration of a runner that is gone, long after its own life has ended: 1 m → 15 m apart, for 24 h. What is
 * still there then is reported as dangling; GitHub itself drops an ephemeral runner after one day offline and others after 14.
 */
export async function deregistration(input: DeregistrationInput): Promise<DeregistrationResult> {
  const { scope, credential, runner, reason, giveUpAfterMs, firstRetryMs } = await admission().admitDeregistration({ input });
  const { name } = runner;
  setCurrentDetails(`Removing the registration of **${name}**: ${reason}`);
  const { removeRegistration } = proxyActivities<HoldfastActivities>({
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    summary: 'unregister (again while the CI server calls it busy)',
    startToCloseTimeout: '3m',
    heartbeatTimeout: '15s',
    scheduleToCloseTimeout: giveUpAfterMs,
    retry: { initialInterval: firstRetryMs, backoffCoefficient: 2, maximumInterval: firstRetryMs * LONGEST_RETRY_FACTOR },
  });
  const called = await settle(
    removeRegistration({
      scope,
      credential,
      runner,
      // No delay of its own: a busy answer backs off as the retry policy says.
      onBusy: 'retry',
      credentialsRetryMs: firstRetryMs * 5,
    }),
  );
  if (called.kind === 'done') {
    const { answer, attempts } = called.value;
    const outcome = answer === 'removed' ? 'removed' : 'absent';
    return { outcome, attempts, message: `The registration of ${name} is ${outcome}.` };
  }
  if (called.kind === 'interrupted') throw ApplicationFailure.nonRetryable('The removal was cancelled', 'Cancelled');
  return {
    outcome: 'dangling',
    message: `The registration of ${name} could not be removed within ${formatDuration(giveUpAfterMs)}: ${called.message}`,
  };
}
