/** What `holdfast set` asks of a set's workflow, and its errors in the words of sets. */
import { WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError, type WorkflowExecutionDescription } from '@temporalio/client';
import { ApplicationFailure, WorkflowNotFoundError } from '@temporalio/common';
import { RUNNER_SET_WORKFLOW, setWorkflowId, type RunnerSetStatus } from '../../../core/contract/index.ts';
import { CliError } from '../terminal/exit.ts';
import { QUERY_TIMEOUT_MS } from '../runner/runnerState.ts';
import type { Session } from '../temporal/session.ts';
import { toCliError } from '../temporal/temporalErrors.ts';

/** A worker that runs answers an update within this, in ms: validation, and an activity or two. */
const UPDATE_TIMEOUT_MS = 10_000;

/** A set by its name, or by its workflow id: one that runs, or the last one that did. @throws CliError `not_found`, `usage`, `unreachable` */
export async function describeSet(session: Session, nameOrId: string): Promise<WorkflowExecutionDescription> {
  const ids = [setWorkflowId(nameOrId), ...(nameOrId.startsWith(setWorkflowId('')) ? [nameOrId] : [])];
  for (const id of ids) {
    const found = await describeSetById(session, id);
    if (found !== undefined) return found;
  }
  throw new CliError('not_found', `no set ${nameOrId} in namespace ${session.settings.namespace}: see "holdfast set list"`);
}

/** @returns `undefined` when there never was one @throws CliError `conflict` when the id is not a set's, `usage`, `unreachable` */
export async function describeSetById(session: Session, workflowId: string): Promise<WorkflowExecutionDescription | undefined> {
  try {
    const description = await session.attempt((client) => client.workflow.getHandle(workflowId).describe());
    if (description.type !== RUNNER_SET_WORKFLOW) throw new CliError('conflict', `${workflowId} is no set but a workflow of type ${description.type}`);
    return description;
  } catch (error) {
    const known = setError(error, session, workflowId);
    if (known.code === 'not_found') return undefined;
    throw known;
  }
}

/** A set that runs. @throws CliError `not_found` also when it has ended */
export async function runningSet(session: Session, nameOrId: string): Promise<WorkflowExecutionDescription> {
  const found = await describeSet(session, nameOrId);
  if (found.status.name !== 'RUNNING') throw ended(nameOf(found.workflowId));
  return found;
}

/** Asks the workflow; `undefined` when no worker answers in time. @throws CliError `not_found`, `usage` */
export async function askSet<T>(session: Session, workflowId: string, query: string, timeoutMs: number = QUERY_TIMEOUT_MS): Promise<T | undefined> {
  try {
    return await session.attemptUntilHeard((client) => client.workflow.getHandle(workflowId).query<T>(query), timeoutMs);
  } catch (error) {
    const known = setError(error, session, workflowId);
    if (known.code === 'not_found' || known.code === 'usage') throw known;
    return undefined;
  }
}

/** Has the workflow change something. @returns what it says of itself then @throws CliError; `invalid_input` with the workflow's own words */
export async function tellSet(session: Session, workflowId: string, update: { readonly name: string }, body: unknown = {}): Promise<RunnerSetStatus> {
  try {
    return await session.update<RunnerSetStatus>(workflowId, update.name, body, UPDATE_TIMEOUT_MS);
  } catch (error) {
    throw setError(error, session, workflowId);
  }
}

/** Any error of the client, in the words of sets. */
export function setError(error: unknown, session: Session, workflowId: string): CliError {
  const name = nameOf(workflowId);
  if (error instanceof WorkflowNotFoundError) {
    return /already completed/i.test(error.message)
      ? ended(name, error)
      : new CliError('not_found', `no set ${name} in namespace ${session.settings.namespace}: see "holdfast set list"`, { cause: error });
  }
  if (error instanceof WorkflowUpdateFailedError) return refusal(error, name);
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return noAnswer(name, error);
  return toCliError(error, session.about(workflowId));
}

const ended = (name: string, cause?: unknown): CliError => new CliError('not_found', `set ${name} has ended already: see it with "holdfast set get ${name}"`, { cause });

function refusal(error: WorkflowUpdateFailedError, name: string): CliError {
  const { cause } = error;
  const type = cause instanceof ApplicationFailure ? cause.type : undefined;
  // https://docs.temporal.io/encyclopedia/workflow-message-passing#message-handler-concurrency: accepted, and the workflow ended before it was done.
  if (type === 'AcceptedUpdateCompletedWorkflow') return new CliError('not_found', `set ${name} ended meanwhile`, { cause: error });
  return new CliError(type === 'InvalidInput' ? 'invalid_input' : 'failed', `set ${name} refuses: ${cause?.message ?? error.message}`, { cause: error });
}

/** A worker is needed, and none answers. */
function noAnswer(name: string, cause: unknown): CliError {
  return new CliError('failed', `set ${name}: no worker answered within ${UPDATE_TIMEOUT_MS / 1_000} s, so it may or may not have taken effect; check that a worker runs ("holdfast worker"), and see "holdfast set get ${name}"`, { cause });
}

/** `set-linux` → `linux` */
export const nameOf = (workflowId: string): string => (workflowId.startsWith(setWorkflowId('')) ? workflowId.slice(setWorkflowId('').length) : workflowId);
