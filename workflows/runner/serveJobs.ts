/** The main part of a runner workflow: the runner is online and waits for a job or runs one. */
import { condition } from '@temporalio/workflow';
import type { RunnerInput } from '../../core/contract/index.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import { continueAsNewIfSuggested, canContinueAsNew } from './continueAsNew.ts';
import type { CurrentRunner } from './carriedState.ts';
import { deadlineCancellation } from './jobDeadline.ts';
import { isSuspect } from './runnerActivity.ts';
import type { RunnerState } from './state.ts';
import { refreshPod } from './podWaits.ts';
import { notifySetBusy } from './notifySet.ts';

/**
 * Serves jobs until the runner has ended, a cancel arrived, or the runner is suspect. Continues as
 * new between two waits if the server suggests it.
 */
export async function serveJobs(state: RunnerState, input: RunnerInput): Promise<void> {
  const { spec, runner } = state;
  const over = () =>
    runner.ended !== undefined || state.cancel !== undefined || runner.suspected !== undefined;
  while (!over()) {
    const busy = runner.busySince !== undefined;
    state.enterPhase(busy ? 'Busy' : 'Idle', {}, runner.busySince);
    if (!busy && isSuspect(state)) {
      if (spec.set !== undefined)
        state.requestCancel({
          mode: 'drain',
          reason: `it was busy for ${formatDuration(runner.unconfirmedBusyMs ?? 0)} in all, and no event of the CI server named a job: its set makes another`,
          by: 'drain',
        });
      else
        runner.suspected = {
          cause: 'run_timeout',
          why: 'The runner was busy for as long as one job may be, and no event of the CI server named a job',
        };
      return;
    }
    if (busy) void notifySetBusy(state);
    const deadline = runner.jobDeadline;
    const timeoutMs = busy ? (deadline ?? Number.NaN) - Date.now() : spec.timeouts.idleMs;
    state.setWaitReason(
      waitReason(runner),
      timeoutMs === undefined ? undefined : Date.now() + timeoutMs,
    );
    const changed = () =>
      over() ||
      (runner.busySince !== undefined) !== busy ||
      runner.jobDeadline !== deadline ||
      canContinueAsNew(state);
    // The condition that ended the wait may no longer hold (a job that started and ended in one
    // step), but the wait did not time out.
    const woken =
      timeoutMs === undefined
        ? await always(condition(changed))
        : await condition(changed, Math.max(1, timeoutMs), {
            summary: busy ? 'job timeout' : 'idle timeout',
          });
    await continueAsNewIfSuggested(state, input);
    if (woken) continue;
    // Nothing is stopped based on an outdated state: the report that the runner is idle again may
    // have been lost, and a busy report arrives some seconds late.
    if (spec.scope !== undefined && (!busy || runner.podBusy === true))
      await refreshPod(
        state,
        busy ? 'check that its job still runs' : 'check that it has taken no job',
      );
    if (runner.pod?.ended === true) runner.ended ??= runner.pod;
    if (over() || (runner.busySince !== undefined) !== busy || runner.jobDeadline !== deadline)
      continue;
    if (busy) state.requestCancel(deadlineCancellation(state));
    else
      state.requestCancel({
        mode: 'drain',
        reason: `it was idle for ${formatDuration(spec.timeouts.idleMs ?? 0)}`,
        by: 'idle_timeout',
      });
  }
}

function waitReason({ busySince, jobEndedAt }: CurrentRunner): string {
  if (busySince === undefined) return 'a job';
  return jobEndedAt === undefined ? 'its job to end' : 'the runner to exit after its job';
}

async function always(wait: Promise<void>): Promise<true> {
  await wait;
  return true;
}
