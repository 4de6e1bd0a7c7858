import { CancelledFailure, CancellationScope, workflowInfo } from '@temporalio/workflow';
import type { RunnerInput, RunnerResult } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { admissionActivities } from '../shared/activityProxies.ts';
import { countCompletedRunner } from '../shared/metrics.ts';
import { pinVersion } from '../shared/versioning.ts';
import { bringUp } from './bringUp.ts';
import { registerSignalHandlers, registerStatusQuery, registerUpdateHandlers } from './handlers.ts';
import type { CarriedRunnerState } from './carriedState.ts';
import { finalFacts, verdictFacts } from './endFacts.ts';
import { countJobTime } from './jobDeadline.ts';
import { RunnerState } from './state.ts';
import { awaitPodEnd } from './podWaits.ts';
import { readmit } from './readmit.ts';
import { rerunLostJob } from './rerunLostJob.ts';
import { replaceRunner } from './replace.ts';
import { serveJobs } from './serveJobs.ts';
import { tearDown, tearDownClaims } from './tearDown.ts';
import { notifyJobStepEnded } from './notifyJob.ts';
import { endedNotification, notifySetEnded, notifySetOnline } from './notifySet.ts';
import { unregister } from './unregister.ts';
import { decideVerdict, whenCancelled, type Verdict } from './verdict.ts';

/**
 * Time from a runner's start within which its loss counts as short-lived (ms). Its replacement then
 * starts after a longer delay.
 */
const SHORT_LIVED_MS = 10 * 60_000;

/**
 * Runs one self-hosted CI runner: registers it, runs it in a pod, unregisters it and tears it down.
 * Completes with a verdict ({@link RunnerResult}). The workflow ends as Cancelled only if a
 * Temporal cancellation arrived before its verdict, and as Failed only for invalid input and
 * defects.
 *
 * @param input - validated in the first step of each run, against the settings of a worker
 * @param carried - state of the previous run, if this run continues it: counters and received
 * events. It grants no permissions and raises no limits.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every invalid field
 */
export async function runner(
  input: RunnerInput,
  carried?: CarriedRunnerState,
): Promise<RunnerResult> {
  const { workflowId, firstExecutionRunId: firstRunId, runStartTime } = workflowInfo();
  const state = new RunnerState(workflowId, firstRunId, runStartTime.getTime());
  registerUpdateHandlers(state);
  registerStatusQuery(state);
  if (carried === undefined)
    state.admit(await admissionActivities().admitRunner({ input, workflowId, firstRunId }));
  else await readmit(state, input, carried);
  registerSignalHandlers(state);
  // Unregistering and tearing down must always complete, so a Temporal cancellation is handled as a
  // cancel request and does not interrupt them.
  void CancellationScope.current().cancelRequested.catch(() => {
    state.workflowCancelled = true;
    state.requestCancel({ mode: 'stop', reason: 'the workflow was cancelled', by: 'cancelled' });
  });
  const result = await CancellationScope.nonCancellable(
    async () => await runToCompletion(state, input, carried !== undefined),
  );
  if (state.workflowCancelled && result.outcome === 'aborted')
    throw new CancelledFailure(result.message);
  return result;
}

pinVersion(runner);

/**
 * Registers, runs, unregisters and tears down a runner. Repeats this for each replacement of a lost
 * runner.
 */
async function runToCompletion(
  state: RunnerState,
  input: RunnerInput,
  continued: boolean,
): Promise<RunnerResult> {
  for (let isUp = continued; ; isUp = false) {
    const startedAt = Date.now();
    if (isUp) awaitPodEnd(state);
    else state.failure = await bringUp(state);
    // Do not block: the job starts whether or not the set has been notified.
    if (state.runner.online) void notifySetOnline(state);
    if (state.failure === undefined && state.cancel === undefined) await serveJobs(state, input);
    countJobTime(state);
    const unregistered = await unregister(state, input);
    void notifyJobStepEnded(state, unregistered);
    state.fixVerdictCancel();
    const facts = verdictFacts(state, unregistered);
    const ending = decideVerdict(facts);
    await tearDown(state, ending.kind === 'end' ? endedNotification(state, ending) : undefined);
    state.countLostAttempt({ shortLived: Date.now() - startedAt < SHORT_LIVED_MS });
    const final = finalFacts(state, unregistered, facts);
    const decision = decideVerdict(final);
    const rerunWorkflowId = await rerunLostJob(state, final);
    const handedOver = { ...unregistered, ...omitUndefined({ rerunWorkflowId }) };
    if (decision.kind === 'end') return await finish(state, decision, handedOver);
    await replaceRunner(state, decision, rerunWorkflowId);
    if (state.cancel !== undefined)
      return await finish(state, whenCancelled(final, state.cancel), handedOver);
  }
}

/** Workflows that do what is left after the end of the last runner. */
type HandedOver = Pick<RunnerResult, 'deregistrationWorkflowId' | 'rerunWorkflowId'>;

async function finish(
  state: RunnerState,
  { outcome, cause, message }: Verdict,
  { deregistrationWorkflowId, rerunWorkflowId }: HandedOver,
): Promise<RunnerResult> {
  await tearDownClaims(state);
  state.enterPhase('Gone', { outcome, message, ...omitUndefined({ cause, rerunWorkflowId }) });
  countCompletedRunner(outcome, cause);
  const { runner, runnerName, unregisterAttempts, phases, replacements } = state;
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
      rerunWorkflowId,
    }),
  };
  await notifySetEnded(state, result);
  return result;
}
