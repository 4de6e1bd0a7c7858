/** Pause of a workflow in Temporal (`temporal workflow pause`), which is not a pause of a set. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isPaused } from '../../core/domain/workflowStatus.ts';

/** Pause of a workflow in Temporal: client, time and reason. */
export interface PauseInfo {
  /** Time of the pause (ISO 8601). */
  readonly since?: string;
  /** Identity of the client that paused it. */
  readonly by?: string;
  readonly reason?: string;
}

/**
 * Returns the pause of a workflow, or `undefined` if it is not paused. Only the status decides:
 * servers up to 1.31 may keep the details of a pause that has ended
 * (https://github.com/temporalio/temporal/issues/10239).
 */
export function pauseInfo({
  status,
  raw,
}: Pick<WorkflowExecutionDescription, 'status' | 'raw'>): PauseInfo | undefined {
  if (!isPaused(status)) return undefined;
  const { pausedTime, identity, reason } = raw.workflowExtendedInfo?.pauseInfo ?? {};
  const since = pausedTime
    ? new Date(Number(pausedTime.seconds ?? 0) * 1_000).toISOString()
    : undefined;
  return omitUndefined({ since, by: identity || undefined, reason: reason || undefined });
}

/** Returns the pause as text: start, client and reason. */
export function pauseText({ since, by, reason }: PauseInfo): string {
  return [
    since === undefined ? 'in Temporal' : `in Temporal since ${since}`,
    ...(by === undefined ? [] : [`by ${by}`]),
    ...(reason === undefined ? [] : [`(${reason})`]),
  ].join(' ');
}

/** Returns what a paused workflow means for an operator, and how to continue it. */
export function pauseNote(workflowId: string): string {
  return `the workflow is paused in Temporal: nothing of it proceeds, and it answers no query; its pods go on. Continue it with: temporal workflow unpause --workflow-id ${workflowId}`;
}
