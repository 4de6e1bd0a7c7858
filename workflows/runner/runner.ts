import { CancelledFailure, CancellationScope, workflowInfo } from '@temporalio/workflow';
import type { RunnerInput, RunnerResult } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { admissionActivities } from '../shared/activityProxies.ts';
import { countCompletedRunner } from '../shared/metrics.ts';
import { pinVersion } from '../shared/versioning.ts';
import { bringUp } from './bringUp.ts';
import { registerSignalHandlers, registerUpdateHandlers } from './handlers.ts';
import type { CarriedRunnerState } from './carriedState.ts';
import { RunnerState } from './state.ts';
import { awaitPodEnd } from './podWaits.ts';
import { replaceRunner } from './replace.ts';
import { serveJobs } from './serveJobs.ts';
import { tearDown, tearDownClaims } from './tearDown.ts';
import { notifyJobStepEnded } from './notifyJob.ts';
import { endedNotification, notifySetEnded, notifySetOnline } from './notifySet.ts';
import { unregister, type Unregistered } from './unregister.ts';
import { decideVerdict, verdictFacts, whenCancelled, type Verdict } from './verdict.ts';

/** A runner lost within this long of its start counts as short-lived: the next one waits a little longer. */
const SHORT_LIVED_MS = 10 * 60_000;

/**
 * One self-hosted CI runner's whole life: register, run in a pod, unregister, tear down. Ends with a verdict ({@link RunnerResult});
 * Cancelled only after plain cancellation; Failed only for invalid input and defects.
 * @param input - checked in the first step, against a worker's config
 * @param carried - state of the run before, when this one continues it
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field
 */
export async function runner(
  input: RunnerInput,
  carried?: CarriedRunnerState,
): Promise<RunnerResult> {
  const { workflowId, firstExecutionRunId: firstRunId, runStartTime } = workflowInfo();
  const life = new RunnerState(workflowId, firstRunId, runStartTime.getTime(), carried);
  registerUpdateHandlers(life);
  if (carried === undefined)
    life.admit(await admissionActivities().admitRunner({ input, workflowId, firstRunId }));
  registerSignalHandlers(life);
  // Whatever ends this life, unregistering and tearing down are not up for cancellation; a plain cancel is a request like the others.
  void CancellationScope.current().cancelRequested.catch(() => {
    life.workflowCancelled = true;
    life.requestCancel({ mode: 'stop', reason: 'the workflow was cancelled', by: 'cancelled' });
  });
  const result = await CancellationScope.nonCancellable(
    async () => await runToCompletion(life, input, carried !== undefined),
  );
  if (life.workflowCancelled) throw new CancelledFailure(result.message);
  return result;
}

pinVersion(runner);

/** Register → run → unregister → tear down; and again, as long as another runner is to take the place of the one that was lost. */
async function runToCompletion(
  life: RunnerState,
  input: RunnerInput,
  continued: boolean,
): Promise<RunnerResult> {
  for (let isUp = continued; ; isUp = false) {
    const startedAt = Date.now();
    if (isUp) awaitPodEnd(life);
    else life.failure = await bringUp(life);
    // Nobody waits for the news to arrive: jobs do not either.
    if (life.runner.online) void notifySetOnline(life);
    if (life.failure === undefined && life.cancel === undefined) await serveJobs(life, input);
    const unregistered = await unregister(life, input);
    void notifyJobStepEnded(life, unregistered);
    const ending = decideVerdict(verdictFacts(life, unregistered));
    await tearDown(life, ending.kind === 'end' ? endedNotification(life, ending) : undefined);
    life.countLostAttempt(Date.now() - startedAt < SHORT_LIVED_MS);
    const decision = decideVerdict(verdictFacts(life, unregistered));
    if (decision.kind === 'end') return await finish(life, decision, unregistered);
    await replaceRunner(life, decision);
    if (life.cancel !== undefined)
      return await finish(
        life,
        whenCancelled(verdictFacts(life, unregistered), life.cancel),
        unregistered,
      );
  }
}

async function finish(
  life: RunnerState,
  { outcome, cause, message }: Verdict,
  { deregistrationWorkflowId }: Unregistered,
): Promise<RunnerResult> {
  await tearDownClaims(life);
  life.enterPhase('Gone', { outcome, message, ...omitUndefined({ cause }) });
  countCompletedRunner(outcome, cause);
  const { runner, runnerName, unregisterAttempts, phases, replacements } = life;
  const result: RunnerResult = {
    outcome,
    message,
    runnerName,
    attempt: runner.identity.attempt,
    unregisterAttempts,
    phases,
    replacements,
    ...omitUndefined({
      cause,
      runnerId: runner.id,
      exitCode: runner.pod?.exit?.code,
      deregistrationWorkflowId,
    }),
  };
  await notifySetEnded(life, result);
  return result;
}
