/** Queries to Temporal's visibility (https://docs.temporal.io/list-filter). */
import { RUNNER_WORKFLOW } from '../workflows/contract.ts';

/** A string literal of a list filter. */
export function quoted(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** The running runners of one task queue: another installation's are not ours to miss, nor to signal. */
export function runningRunners(taskQueue: string): string {
  return `WorkflowType = ${quoted(RUNNER_WORKFLOW)} AND ExecutionStatus = 'Running' AND TaskQueue = ${quoted(taskQueue)}`;
}
