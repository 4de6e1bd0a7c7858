/** Metrics of jobs, in the worker that runs their workflow; a replay counts nothing. */
import { metricMeter } from '@temporalio/workflow';
import { RUNNER_OUTCOMES, type RunnerOutcome } from '../../core/contract/index.ts';

/** Prometheus sees no step from nothing to one: every outcome is there, with 0, before the first job ends. */
export function announceEnds(): void {
  for (const outcome of RUNNER_OUTCOMES) count(outcome, 0);
}

export function countEnd(outcome: RunnerOutcome): void {
  count(outcome, 1);
}

/** The SDK adds `_total` to the name. */
function count(outcome: RunnerOutcome, value: number): void {
  metricMeter.createCounter('holdfast_jobs', undefined, 'Jobs of several steps that have ended, by outcome').add(value, { outcome });
}
