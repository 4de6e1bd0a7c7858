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

/** A pod is still to come. */
const COMING_UP: ReadonlySet<RunnerPhase> = new Set(['Requested', 'Provisioning']);

/**
 * Has this life lost its pod without taking notice, or, as a step, its job, or does its runner hang? The first row that matches decides. A worker that is away is no reason to touch a life
 * whose pod lives, for its job may run; nor one that is going to have another pod.
 */
export function judgeRunner(
  life: RunnerWorkflow,
  nowMs: number,
  { minAgeMs }: SweepLimits,
): Assessment {
  const { phase, polled, pods, job } = life;
  if (nowMs - life.startedAtMs < minAgeMs) return skip('young');
  if (pods.some(({ held }) => held)) return skip('held');
  // Nobody else would stop it before its own timeout. It stops itself, so that its worker has to be there.
  if (polled && job !== undefined && job.state !== 'running' && !TEARDOWN_PHASES.has(phase)) {
    return nowMs - (job.closedAtMs ?? 0) < minAgeMs
      ? skip('young')
      : finding(
          'orphaned step',
          `${ORPHANED_STEP_MESSAGE} (its job ${job.workflowId} ${job.how ?? 'has ended'})`,
        );
  }
  const living = pods.filter(({ pod }) => pod?.ended === false);
  const whose = polled ? '' : ', and no worker polls its task queue';
  if (living.length > 0) {
    if (polled)
      return isUnresponsive(life) ? finding('hung runner', UNRESPONSIVE_RUNNER_MESSAGE) : OK;
    const overdue = living.every((pod) => jobIsOverdue(pod, nowMs));
    return overdue
      ? finding(
          'zombie runner',
          `its job has run for longer than ${formatDuration(living[0]?.jobTimeoutCapMs ?? 0)}, the most that it may${whose}`,
        )
      : skip('worker away');
  }
  if (pods.length === 0 && COMING_UP.has(phase)) return skip('mid-flight');
  if (polled && (pods.length > 0 || TEARDOWN_PHASES.has(phase))) return skip('mid-flight');
  if (life.resumes) return skip('resumes');
  return finding(
    'zombie runner',
    `it is ${phase}, its pod ${pods.length > 0 ? 'has ended' : 'is gone'}${whose}`,
  );
}

/** Its job has run for longer than any may. A plain command is its own job; a CI runner that does not tell may have begun one just now. */
function jobIsOverdue(
  { pod, jobTimeoutCapMs = Number.POSITIVE_INFINITY, registration }: OwnedObject,
  nowMs: number,
): boolean {
  const since =
    registration === undefined
      ? pod?.startedAt
      : pod !== undefined && isBusy(pod, nowMs) === true
        ? pod.readinessChangedAt
        : undefined;
  return since !== undefined && Date.parse(since) + jobTimeoutCapMs < nowMs;
}
