/** Queries for Temporal's visibility (https://docs.temporal.io/list-filter). */
import {
  DEREGISTRATION_WORKFLOW,
  RERUN_WORKFLOW,
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  RUNNER_SET_WORKFLOW,
  SWEEP_WORKFLOW,
  type SweepOutcome,
} from '../contract/index.ts';
import type { Scope } from './ciServer.ts';
import { formatLocation, servedLocations, type ServedLocation } from './location.ts';
import { OPEN_FILTER } from './workflowStatus.ts';

/** Returns a string literal of a list filter. */
export function quoteLiteral(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/**
 * Returns the query for the open runners of one task queue. Those of other installations must be
 * neither missed nor signaled.
 */
export function runningRunnersQuery(taskQueue: string): string {
  return `WorkflowType = ${quoteLiteral(RUNNER_WORKFLOW)} AND ${OPEN_FILTER} AND TaskQueue = ${quoteLiteral(taskQueue)}`;
}

/** Returns the query for those of them that one worker may manage. */
export function runningRunnersInQuery(taskQueue: string, served: ServedLocation): string {
  return `${runningRunnersQuery(taskQueue)} AND ${isThere(served)}`;
}

/** Returns the query for all runners of a location, on any task queue, running or not. */
export function runnersInQuery(served: ServedLocation): string {
  return `WorkflowType = ${quoteLiteral(RUNNER_WORKFLOW)} AND ${isThere(served)}`;
}

/**
 * Returns the query for the open workflows that remove registrations of runners that have ended.
 */
export function runningDeregistrationsQuery(): string {
  return `WorkflowType = ${quoteLiteral(DEREGISTRATION_WORKFLOW)} AND ${OPEN_FILTER}`;
}

/**
 * Returns the query for the reruns of a set, or of the runners of a scope that have no set, that
 * count towards its daily maximum: those that ended with a request since a time, and those that have
 * claimed one and started before another (ISO 8601). Only a runner starts a rerun as its child.
 */
export function requestedRerunsQuery({
  scope,
  set,
  since,
  before,
}: {
  readonly scope: Scope;
  readonly set?: string | undefined;
  readonly since: string;
  readonly before: string;
}): string {
  const owner =
    set === undefined
      ? `${SEARCH_ATTRIBUTES.scope.name} = ${quoteLiteral(scope.name)} AND ${SEARCH_ATTRIBUTES.set.name} IS NULL`
      : `${SEARCH_ATTRIBUTES.set.name} = ${quoteLiteral(set)}`;
  return `WorkflowType = ${quoteLiteral(RERUN_WORKFLOW)} AND ${owner} AND ${SEARCH_ATTRIBUTES.outcome.name} = 'requested' AND ParentWorkflowId IS NOT NULL AND ((ExecutionStatus = 'Completed' AND CloseTime >= ${quoteLiteral(since)}) OR (${OPEN_FILTER} AND StartTime < ${quoteLiteral(before)}))`;
}

function isThere(served: ServedLocation): string {
  const names = servedLocations(served).map((place) => quoteLiteral(formatLocation(place)));
  return `${SEARCH_ATTRIBUTES.place.name} ${names.length === 1 ? `= ${names[0]}` : `IN (${names.join(', ')})`}`;
}

/** Returns the query for the open sets of one task queue. */
export function runningSetsQuery(taskQueue: string): string {
  return `WorkflowType = ${quoteLiteral(RUNNER_SET_WORKFLOW)} AND ${OPEN_FILTER} AND TaskQueue = ${quoteLiteral(taskQueue)}`;
}

/** Returns the query for the completed sweeps of one task queue. */
export function completedSweepsQuery(taskQueue: string): string {
  return `WorkflowType = ${quoteLiteral(SWEEP_WORKFLOW)} AND ExecutionStatus = 'Completed' AND TaskQueue = ${quoteLiteral(taskQueue)}`;
}

/**
 * Returns the query for the sweeps of all task queues that repaired something and were completed at
 * this time or later (ISO 8601).
 */
export function repairingSweepsQuery(since: string): string {
  const repaired: SweepOutcome[] = ['repaired', 'failed'];
  return `WorkflowType = ${quoteLiteral(SWEEP_WORKFLOW)} AND ExecutionStatus = 'Completed' AND ${SEARCH_ATTRIBUTES.outcome.name} IN (${repaired.map(quoteLiteral).join(', ')}) AND CloseTime >= ${quoteLiteral(since)}`;
}
