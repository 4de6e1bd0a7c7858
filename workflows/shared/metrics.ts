/**
 * Metrics of workflows, emitted by the worker that runs them; a replay does not count. Prometheus
 * counter names end in `_total`.
 */
import { metricMeter } from '@temporalio/workflow';
import {
  RUNNER_OUTCOMES,
  type DeregistrationResult,
  type RerunResult,
  type RunnerCause,
  type RunnerOutcome,
  type RunnerPhase,
} from '../../core/contract/index.ts';
import { PHASE_DURATION_METRIC } from '../../core/domain/phaseDurationMetric.ts';

/**
 * Creates the counters of completed jobs with the value 0 for every outcome, before the first job
 * ends. Prometheus does not count a step from no series to 1.
 */
export function initializeJobCounters(): void {
  for (const outcome of RUNNER_OUTCOMES) countJobs(outcome, 0);
}

/** Counts a job with steps that has ended, by outcome. */
export function countCompletedJob(outcome: RunnerOutcome): void {
  countJobs(outcome, 1);
}

function countJobs(outcome: RunnerOutcome, value: number): void {
  metricMeter
    .createCounter(
      'holdfast_completed_jobs',
      undefined,
      'Jobs of several steps that have ended, by outcome',
    )
    .add(value, { outcome });
}

/**
 * Counts a runner workflow that has ended, by outcome and cause. These counters are not initialized
 * with 0, because there are too many combinations of outcome and cause.
 */
export function countCompletedRunner(outcome: RunnerOutcome, cause: RunnerCause | undefined): void {
  metricMeter
    .createCounter(
      'holdfast_completed_runners',
      undefined,
      'Lives of runners that have ended, by outcome and cause',
    )
    .add(1, { outcome, cause: cause ?? 'none' });
}

/** Counts the replacement of a lost runner, by cause. */
export function countReplacement(cause: RunnerCause): void {
  metricMeter
    .createCounter(
      'holdfast_runner_replacements',
      undefined,
      'Runners that were lost and replaced within their life, by cause',
    )
    .add(1, { cause });
}

/**
 * Records how long a runner was in a phase that has ended.
 *
 * @param ms - duration of the phase (ms)
 */
export function observePhase(phase: RunnerPhase, ms: number): void {
  metricMeter
    .createHistogram(
      PHASE_DURATION_METRIC,
      'float',
      undefined,
      'How long runners were in a phase that is over',
    )
    .record(ms / 1_000, { phase });
}

/** Counts a `deregistration` workflow that has ended, by outcome. */
export function countDeregistration(outcome: DeregistrationResult['outcome']): void {
  metricMeter
    .createCounter(
      'holdfast_completed_deregistrations',
      undefined,
      'Registrations that were removed after their runner, by outcome',
    )
    .add(1, { outcome });
}

/** Counts a lost job by what its `rerun` workflow has done, and the reason if it did not rerun. */
export function countRerun({ outcome, reason }: RerunResult): void {
  metricMeter
    .createCounter(
      'holdfast_job_reruns',
      undefined,
      'Jobs that were lost with their runner, by outcome of their rerun',
    )
    .add(1, { outcome, reason: reason ?? 'none' });
}
