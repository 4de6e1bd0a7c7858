/** Queries to Temporal's visibility (https://docs.temporal.io/list-filter). */
import {
  DEREGISTRATION_WORKFLOW,
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  RUNNER_SET_WORKFLOW,
  SWEEP_WORKFLOW,
  type SweepOutcome,
} from '../contract/index.ts';
import { formatLocation, type ServedLocation } from './location.ts';

/** A string literal of a list filter. */
export function quoteLiteral(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** The running runners of one task queue: another installation's are not ours to miss, nor to signal. */
export function runningRunnersQuery(taskQueue: string): string {
  return `WorkflowType = ${quoteLiteral(RUNNER_WORKFLOW)} AND ExecutionStatus = 'Running' AND TaskQueue = ${quoteLiteral(taskQueue)}`;
}

/** Those of them that one worker may look after. */
export function runningRunnersInQuery(taskQueue: string, served: ServedLocation): string {
  return `${runningRunnersQuery(taskQueue)} AND ${isThere(served)}`;
}

/** All runners of a place, on whichever task queue, running or not. */
export function runnersInQuery(served: ServedLocation): string {
  return `WorkflowType = ${quoteLiteral(RUNNER_WORKFLOW)} AND ${isThere(served)}`;
}

/** The running removals of registrations that outlived their runners. */
export function runningDeregistrationsQuery(): string {
  return `WorkflowType = ${quoteLiteral(DEREGISTRATION_WORKFLOW)} AND ExecutionStatus = 'Running'`;
}

function isThere(served: ServedLocation): string {
  const name = formatLocation(served);
  return `${SEARCH_ATTRIBUTES.place.name} ${served.allNamespaces === true ? `STARTS_WITH ${quoteLiteral(name.slice(0, -1))}` : `= ${quoteLiteral(name)}`}`;
}

/** The running sets of one task queue. */
export function runningSetsQuery(taskQueue: string): string {
  return `WorkflowType = ${quoteLiteral(RUNNER_SET_WORKFLOW)} AND ExecutionStatus = 'Running' AND TaskQueue = ${quoteLiteral(taskQueue)}`;
}

/** The sweeps of one task queue that gave a report. */
export function completedSweepsQuery(taskQueue: string): string {
  return `WorkflowType = ${quoteLiteral(SWEEP_WORKFLOW)} AND ExecutionStatus = 'Completed' AND TaskQueue = ${quoteLiteral(taskQueue)}`;
}

/** The sweeps, of whichever task queue, that repaired something and were over at that time or later (ISO 8601). */
export function repairingSweepsQuery(since: string): string {
  const repaired: SweepOutcome[] = ['repaired', 'failed'];
  return `WorkflowType = ${quoteLiteral(SWEEP_WORKFLOW)} AND ExecutionStatus = 'Completed' AND ${SEARCH_ATTRIBUTES.outcome.name} IN (${repaired.map(quoteLiteral).join(', ')}) AND CloseTime >= ${quoteLiteral(since)}`;
}
