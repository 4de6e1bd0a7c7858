import { NOT_HEARD_OF, STEP_WITHOUT_JOB, type RunnerPhase } from '../contract/index.ts';
import { isBusy } from '../domain/podConditions.ts';
import { formatDuration } from '../domain/duration.ts';
import type { SweepLimits } from '../input/sweep.ts';
import { condemned, FINE, skip, type Judgement, type RunningLife } from './facts.ts';
import { isHung, LEAVING } from './unresponsiveRunner.ts';
import type { OwnedObject } from './ownedObject.ts';

/** A pod is still to come. */
const COMING_UP: ReadonlySet<RunnerPhase> = new Set(['Requested', 'Provisioning']);

/**
 * Has this life lost its pod without taking notice, or, as a step, its job, or does its runner hang? The first row that matches decides. A worker that is away is no reason to touch a life
 * whose pod lives, for its job may run; nor one that is going to have another pod.
 */
export function judgeRunner(
  life: RunningLife,
  nowMs: number,
  { minAgeMs }: SweepLimits,
): Judgement {
  const { phase, polled, pods, job } = life;
  if (nowMs - life.startedAtMs < minAgeMs) return skip('young');
  if (pods.some(({ held }) => held)) return skip('held');
  // Nobody else would stop it before its own timeout. It stops itself, so that its worker has to be there.
  if (polled && job !== undefined && job.state !== 'running' && !LEAVING.has(phase)) {
    return nowMs - (job.closedAtMs ?? 0) < minAgeMs
      ? skip('young')
      : condemned(
          'orphaned step',
          `${STEP_WITHOUT_JOB} (its job ${job.workflowId} ${job.how ?? 'has ended'})`,
        );
  }
  const living = pods.filter(({ pod }) => pod?.ended === false);
  const whose = polled ? '' : ', and no worker polls its task queue';
  if (living.length > 0) {
    if (polled) return isHung(life) ? condemned('hung runner', NOT_HEARD_OF) : FINE;
    const overdue = living.every((pod) => jobIsOverdue(pod, nowMs));
    return overdue
      ? condemned(
          'zombie runner',
          `its job has run for longer than ${formatDuration(living[0]?.jobTimeoutCapMs ?? 0)}, the most that it may${whose}`,
        )
      : skip('worker away');
  }
  if (pods.length === 0 && COMING_UP.has(phase)) return skip('mid-flight');
  if (polled && (pods.length > 0 || LEAVING.has(phase))) return skip('mid-flight');
  if (life.resumes) return skip('resumes');
  return condemned(
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
