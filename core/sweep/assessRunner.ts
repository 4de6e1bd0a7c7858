import {
  UNRESPONSIVE_RUNNER_MESSAGE,
  ORPHANED_STEP_MESSAGE,
  type RunnerPhase,
} from '../contract/index.ts';
import { isBusy } from '../domain/podConditions.ts';
import { formatDuration } from '../domain/duration.ts';
import type { SweepLimits } from '../input/sweep.ts';
import { finding, OK, skip, type Assessment, type RunnerWorkflow } from './facts.ts';
import { isUnresponsive, TEARDOWN_PHASES } from './unresponsiveRunner.ts';
import type { OwnedObject } from './ownedObject.ts';

/** Phases in which the pod does not exist yet. */
const PROVISIONING_PHASES: ReadonlySet<RunnerPhase> = new Set(['Requested', 'Provisioning']);

/**
 * Assesses whether a runner workflow is stuck, is a step whose job has ended, or has an unresponsive
 * runner. The first matching row applies. A workflow whose worker is away is left alone while its
 * pod runs, because the pod may run a job, and while it is about to get another pod.
 */
export function assessRunner(
  runner: RunnerWorkflow,
  nowMs: number,
  { minAgeMs }: SweepLimits,
): Assessment {
  const { phase, hasPoller, pods, job } = runner;
  if (nowMs - runner.startedAtMs < minAgeMs) return skip('too_young');
  // An operator has stopped it, and no signal would change anything.
  if (runner.paused === true) return skip('paused');
  if (pods.some(({ onHold }) => onHold)) return skip('on_hold');
  // Nothing else would stop the step before its own timeout. The step stops itself, so its worker
  // must be running.
  if (hasPoller && job !== undefined && job.state !== 'running' && !TEARDOWN_PHASES.has(phase)) {
    return nowMs - (job.closedAtMs ?? 0) < minAgeMs
      ? skip('too_young')
      : finding(
          'orphaned_step',
          `${ORPHANED_STEP_MESSAGE} (its job ${job.workflowId} ${job.how ?? 'has ended'})`,
        );
  }
  const running = pods.filter(({ pod }) => pod?.ended === false);
  const unpolled = hasPoller ? '' : ', and no worker polls its task queue';
  if (running.length > 0) {
    if (hasPoller)
      return isUnresponsive(runner)
        ? finding('unresponsive_runner', UNRESPONSIVE_RUNNER_MESSAGE)
        : OK;
    const overdue = running.every((pod) => jobIsOverdue(pod, nowMs));
    return overdue
      ? finding(
          'stuck_runner',
          `its job has run for longer than ${formatDuration(running[0]?.jobTimeoutCapMs ?? 0)}, the most that it may${unpolled}`,
        )
      : skip('no_worker');
  }
  if (pods.length === 0 && PROVISIONING_PHASES.has(phase)) return skip('in_transition');
  // A worker that comes back deletes the rest of the pod or the registration.
  if (pods.length > 0 || TEARDOWN_PHASES.has(phase))
    return skip(hasPoller ? 'in_transition' : 'no_worker');
  if (runner.willResume) return skip('will_resume');
  return finding('stuck_runner', `it is ${phase}, its pod is gone${unpolled}`);
}

/**
 * Returns whether the job has run for longer than the maximum. A plain command is its own job. A CI
 * runner that does not report its state may have started a job just now.
 */
function jobIsOverdue(
  { pod, jobTimeoutCapMs = Number.POSITIVE_INFINITY, registration }: OwnedObject,
  nowMs: number,
): boolean {
  const isCiRunner = registration !== undefined;
  const busySince =
    pod !== undefined && isBusy(pod, nowMs) === true ? pod.readinessChangedAt : undefined;
  const since = isCiRunner ? busySince : pod?.startedAt;
  return since !== undefined && Date.parse(since) + jobTimeoutCapMs < nowMs;
}
