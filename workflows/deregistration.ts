import { ApplicationFailure, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { HoldfastActivities } from '../activities/index.ts';
import { settle } from './calls.ts';
import { ciTaskQueue, type DeregistrationInput, type DeregistrationResult } from './contract.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { RUNNER_DEFAULTS, toScope } from './input.ts';

const GIVE_UP_AFTER = '24h';
const FIRST_RETRY = '1m';
/** GitHub frees a runner that died with its job in 10 to 15 minutes, sometimes in hours. */
const LONGEST_RETRY_FACTOR = 15;

/**
 * Goes on removing the registration of a runner that is gone, long after its own life has ended: 1 m → 15 m apart, for 24 h. What is
 * still there then is reported as dangling; GitHub itself drops an ephemeral runner after one day offline and others after 14.
 */
export async function deregistration(input: DeregistrationInput): Promise<DeregistrationResult> {
  const giveUpMs = durationOf('giveUpAfter', input.giveUpAfter ?? GIVE_UP_AFTER);
  const firstRetryMs = durationOf('firstRetry', input.firstRetry ?? FIRST_RETRY);
  const credential = input.credential ?? RUNNER_DEFAULTS.credential;
  const name = 'name' in input.runner ? input.runner.name : `${input.runner.namePrefix}-…`;
  setCurrentDetails(`Removing the registration of **${name}**: ${input.reason}`);
  const { release } = proxyActivities<HoldfastActivities>({
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    summary: 'unregister (again while the CI server calls it busy)',
    startToCloseTimeout: '3m',
    heartbeatTimeout: '15s',
    scheduleToCloseTimeout: giveUpMs,
    retry: { initialInterval: firstRetryMs, backoffCoefficient: 2, maximumInterval: firstRetryMs * LONGEST_RETRY_FACTOR },
  });
  const called = await settle(
    release({
      scope: toScope(input),
      credential,
      runner: input.runner,
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
    message: `The registration of ${name} could not be removed within ${formatDuration(giveUpMs)}: ${called.message}`,
  };
}

function durationOf(field: string, text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw ApplicationFailure.nonRetryable(`Invalid input: ${field} is not a duration; write for example "24h"`, 'InvalidInput');
  return ms;
}
