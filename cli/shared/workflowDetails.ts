/** Facts about a workflow that Temporal knows without a worker, for `get` commands. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { pauseInfo, type PauseInfo } from '../../worker/temporal/pauseInfo.ts';
import { pendingActivities, type PendingActivity } from './pendingActivities.ts';
import type { Session } from './session.ts';
import { createPollerCheck, unpolledQueues, type UnpolledQueue } from './unpolledQueues.ts';

/** Facts about a workflow that need no worker. */
export interface WorkflowDetails {
  /** Pause of the workflow in Temporal. */
  readonly paused?: PauseInfo;
  readonly pendingActivities: readonly PendingActivity[];
  /** Task queues with waiting tasks that no worker polls. */
  readonly unpolledQueues: readonly UnpolledQueue[];
  /** Address of the workflow in the Temporal UI. */
  readonly ui?: string;
}

/** Note about a workflow whose query no worker answered in time. */
export const NO_WORKER_NOTE =
  'no worker answered within 3 s; this is what Temporal knows without it. Check that a worker runs ("holdfast worker")';

/**
 * Reads the facts of a workflow.
 * @throws CliError, PayloadKeyError
 */
export async function workflowDetails(
  session: Session,
  description: WorkflowExecutionDescription,
): Promise<WorkflowDetails> {
  const pending = await pendingActivities(description.raw, session.converter);
  return {
    pendingActivities: pending,
    unpolledQueues: await unpolledQueues(createPollerCheck(session), description, pending),
    ...omitUndefined({
      paused: pauseInfo(description),
      ui: session.link(description.workflowId, description.runId),
    }),
  };
}

/** Formats the fields of an object, one per line. Fields without a value are left out. */
export function fieldLines(
  fields: readonly (readonly [name: string, value: string | undefined])[],
): string[] {
  return fields
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `${`${name}:`.padEnd(18)}${value}`);
}

/** Formats what something waits for, and until when. */
export function waitText({
  waitingFor,
  waitingUntil,
}: {
  readonly waitingFor?: string;
  readonly waitingUntil?: string;
}): string | undefined {
  if (waitingFor === undefined) return undefined;
  return waitingUntil === undefined ? waitingFor : `${waitingFor}, until ${waitingUntil}`;
}
