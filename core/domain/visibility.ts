/** Queries to Temporal's visibility (https://docs.temporal.io/list-filter). */
import {
  DEREGISTRATION_WORKFLOW,
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  RUNNER_SET_WORKFLOW,
  SWEEP_WORKFLOW,
  type SweepOutcome,
} from '../contract/index.ts';
import { placeName, type ServedPlace } from './location.ts';

/** A string literal of a list filter. */
export function quoted(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** The running runners of one task queue: another installation's are not ours to miss, nor to signal. */
export function runningRunners(taskQueue: string): string {
  return `WorkflowType = ${quoted(RUNNER_WORKFLOW)} AND ExecutionStatus = 'Running' AND TaskQueue = ${quoted(taskQueue)}`;
}

/** Those of them that one worker may look after. */
export function runningRunnersIn(taskQueue: string, served: ServedPlace): string {
  return `${runningRunners(taskQueue)} AND ${isThere(served)}`;
}

/** All runners of a place, on whichever task queue, running or not. */
export function runnersIn(served: ServedPlace): string {
  return `WorkflowType = ${quoted(RUNNER_WORKFLOW)} AND ${isThere(served)}`;
}

/** The running removals of registrations that outlived their runners. */
export function runningDeregistrations(): string {
  return `WorkflowType = ${quoted(DEREGISTRATION_WORKFLOW)} AND ExecutionStatus = 'Running'`;
}

function isThere(served: ServedPlace): string {
  const name = placeName(served);
  return `${SEARCH_ATTRIBUTES.place.name} ${served.allNamespaces === true ? `STARTS_WITH ${quoted(name.slice(0, -1))}` : `= ${quoted(name)}`}`;
}

/** The running sets of one task queue. */
export function runningSets(taskQueue: string): string {
  return `WorkflowType = ${quoted(RUNNER_SET_WORKFLOW)} AND ExecutionStatus = 'Running' AND TaskQueue = ${quoted(taskQueue)}`;
}

/** The sweeps of one task queue that gave a report. */
export function completedSweeps(taskQueue: string): string {
  return `WorkflowType = ${quoted(SWEEP_WORKFLOW)} AND ExecutionStatus = 'Completed' AND TaskQueue = ${quoted(taskQueue)}`;
}

/** The sweeps, of whichever task queue, that repaired something and were over at that time or later (ISO 8601). */
export function sweepsThatRepaired(since: string): string {
  const repaired: SweepOutcome[] = ['repaired', 'failed'];
  return `WorkflowType = ${quoted(SWEEP_WORKFLOW)} AND ExecutionStatus = 'Completed' AND ${SEARCH_ATTRIBUTES.outcome.name} IN (${repaired.map(quoted).join(', ')}) AND CloseTime >= ${quoted(since)}`;
}
