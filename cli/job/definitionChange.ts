/** `holdfast job pause|resume|delete`: what an operator tells one declared job. */
import {
  deleteDefinitionSignal,
  pauseDefinitionSignal,
  resumeDefinitionSignal,
  type JobDefinitionStatus,
} from '../../core/contract/index.ts';
import { requestedBy } from '../shared/requestedBy.ts';
import type { Session } from '../shared/session.ts';
import { CliError, EXIT } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import { pause as wait } from '../shared/followRunner.ts';
import { describeDefinitionById, runningDefinition, tellDefinition } from './definitionClient.ts';

/** How often it is looked whether one has ended, in ms. */
const LOOK_EVERY_MS = 1_000;
const UNHEARD = 'no worker answered; Temporal keeps the request until one runs';

export async function pauseDefinition(
  session: Session,
  output: Output,
  nameOrId: string,
  reason: string = requestedBy(),
): Promise<void> {
  const { workflowId } = await runningDefinition(session, nameOrId);
  const status = await tellDefinition(
    session,
    workflowId,
    pauseDefinitionSignal,
    { reason },
    ({ paused }) => paused !== undefined,
  );
  tell(
    output,
    workflowId,
    status,
    'paused: nothing is begun; what runs goes on, and what comes waits, but for times of its schedule',
  );
}

export async function resumeDefinition(
  session: Session,
  output: Output,
  nameOrId: string,
): Promise<void> {
  const { workflowId } = await runningDefinition(session, nameOrId);
  const status = await tellDefinition(
    session,
    workflowId,
    resumeDefinitionSignal,
    {},
    ({ paused }) => paused === undefined,
  );
  tell(output, workflowId, status, 'resumed');
}

/** @returns the status to exit with */
export async function deleteDefinition(
  session: Session,
  output: Output,
  nameOrId: string,
  { wait: toTheEnd = false, reason = requestedBy() }: { wait?: boolean; reason?: string },
): Promise<number> {
  const { workflowId } = await runningDefinition(session, nameOrId);
  const status = await tellDefinition(
    session,
    workflowId,
    deleteDefinitionSignal,
    { reason },
    ({ ending }) => ending !== undefined,
  );
  const left = status?.running.length ?? 0;
  const asked =
    status === undefined
      ? UNHEARD
      : left === 0
        ? 'deleted'
        : `${left} under way; it ends when they have`;
  if (!toTheEnd) {
    tell(output, workflowId, status, asked);
    return EXIT.ok;
  }
  output.note('waiting', `${workflowId}: ${asked}`);
  const forever = new AbortController().signal;
  for (;;) {
    const found = await describeDefinitionById(session, workflowId);
    if (found === undefined) throw new CliError('not_found', `declared job ${workflowId} is gone`);
    if (found.status.name !== 'RUNNING') {
      const deleted = found.status.name === 'COMPLETED';
      output.result({ id: workflowId, deleted, status: found.status.name }, [
        `${workflowId}: ${deleted ? 'deleted' : found.status.name.toLowerCase()}`,
      ]);
      return deleted ? EXIT.ok : EXIT.failed;
    }
    await wait(LOOK_EVERY_MS, forever);
  }
}

function tell(
  output: Output,
  id: string,
  status: JobDefinitionStatus | undefined,
  text: string,
): void {
  output.result(status === undefined ? { id, note: UNHEARD } : { id, ...status }, [
    `${id}: ${status === undefined ? UNHEARD : text}`,
  ]);
}
