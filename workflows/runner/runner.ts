import { CancelledFailure, CancellationScope, workflowInfo } from '@temporalio/workflow';
import type { RunnerInput, RunnerResult } from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { admission } from '../shared/activityProxies.ts';
import { countRunnerEnd } from '../shared/metrics.ts';
import { endsWhereItBegan } from '../shared/versioning.ts';
import { comeUp } from './bringUp.ts';
import { takeSignals, takeUpdates } from './handlers.ts';
import type { CarriedLife } from './carriedState.ts';
import { RunnerLife } from './state.ts';
import { awaitEnd } from './podWaits.ts';
import { replaceRunner } from './replace.ts';
import { serve } from './serveJobs.ts';
import { tearDown, tearDownClaims } from './tearDown.ts';
import { tellJobOfEnd } from './notifyJob.ts';
import { endWord, tellSetEnded, tellSetOnline } from './notifySet.ts';
import { unregister, type Unregistered } from './unregister.ts';
import { decideEnding, endFacts, whenCancelled, type Verdict } from './verdict.ts';

/** A runner lost within this long of its start counts as short-lived: the next one waits a little longer. */
const SHORT_LIVED_MS = 10 * 60_000;

/**
 * One self-hosted CI runner's whole life: register, run in a pod, unregister, tear down. Ends with a verdict ({@link RunnerResult});
 * Cancelled only after plain cancellation; Failed only for invalid input and defects.
 * @param input - checked in the first step, against a worker's config
 * @param carried - state of the run before, when this one continues it
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field
 */
export async function runner(input: RunnerInput, carried?: CarriedLife): Promise<RunnerResult> {
  const { workflowId, firstExecutionRunId: firstRunId, runStartTime } = workflowInfo();
  const life = new RunnerLife(workflowId, firstRunId, runStartTime.getTime(), carried);
  takeUpdates(life);
  if (carried === undefined)
    life.admit(await admission().admitRunner({ input, workflowId, firstRunId }));
  takeSignals(life);
  // Whatever ends this life, unregistering and tearing down are not up for cancellation; a plain cancel is a request like the others.
  void CancellationScope.current().cancelRequested.catch(() => {
    life.plainlyCancelled = true;
    life.requestCancel({ mode: 'stop', reason: 'the workflow was cancelled', by: 'cancelled' });
  });
  const result = await CancellationScope.nonCancellable(
    async () => await live(life, input, carried !== undefined),
  );
  if (life.plainlyCancelled) throw new CancelledFailure(result.message);
  return result;
}

endsWhereItBegan(runner);

/** Register → run → unregister → tear down; and again, as long as another runner is to take the place of the one that was lost. */
async function live(
  life: RunnerLife,
  input: RunnerInput,
  continued: boolean,
): Promise<RunnerResult> {
  for (let isUp = continued; ; isUp = false) {
    const startedAt = Date.now();
    if (isUp) awaitEnd(life);
    else life.failure = await comeUp(life);
    // Nobody waits for the news to arrive: jobs do not either.
    if (life.runner.online) void tellSetOnline(life);
    if (life.failure === undefined && life.cancel === undefined) await serve(life, input);
    const unregistered = await unregister(life, input);
    void tellJobOfEnd(life, unregistered);
    const ending = decideEnding(endFacts(life, unregistered));
    await tearDown(life, ending.kind === 'end' ? endWord(life, ending) : undefined);
    life.countLoss(Date.now() - startedAt < SHORT_LIVED_MS);
    const decision = decideEnding(endFacts(life, unregistered));
    if (decision.kind === 'end') return await finish(life, decision, unregistered);
    await replaceRunner(life, decision);
    if (life.cancel !== undefined)
      return await finish(
        life,
        whenCancelled(endFacts(life, unregistered), life.cancel),
        unregistered,
      );
  }
}

async function finish(
  life: RunnerLife,
  { outcome, cause, message }: Verdict,
  { deregistration }: Unregistered,
): Promise<RunnerResult> {
  await tearDownClaims(life);
  life.enter('Gone', { outcome, message, ...defined({ cause }) });
  countRunnerEnd(outcome, cause);
  const { runner, runnerName, unregisterAttempts, phases, replaced } = life;
  const result: RunnerResult = {
    outcome,
    message,
    runnerName,
    attempt: runner.identity.attempt,
    unregisterAttempts,
    phases,
    replaced,
    ...defined({ cause, runnerId: runner.id, exitCode: runner.pod?.exit?.code, deregistration }),
  };
  await tellSetEnded(life, result);
  return result;
}
