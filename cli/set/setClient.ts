/** Queries and commands of `holdfast set`, and errors about sets. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  WorkflowFailedError,
  type WorkflowExecutionDescription,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { ApplicationFailure, WorkflowNotFoundError } from '@temporalio/common';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import {
  RUNNER_SET_WORKFLOW,
  SET_COMMAND_WORKFLOW,
  setWorkflowId,
  type SetCommandResult,
  type RunnerSetStatus,
  type SetCommand,
  type SetStatusRequest,
} from '../../core/contract/index.ts';
import {
  querySetStatus,
  queryWholeSetStatus,
  SetNotAdmittedError,
} from '../../activities/runnerSet/querySetStatus.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import { setCommandOptions } from '../../worker/temporal/setCommand.ts';
import { CliError } from '../shared/exit.ts';
import { QUERY_TIMEOUT_MS } from '../shared/runnerRow.ts';
import { pauseInfo, pauseText, type PauseInfo } from '../../worker/temporal/pauseInfo.ts';
import { describeResource, describeWorkflow } from '../shared/resource.ts';
import { SET } from '../shared/resourceKind.ts';
import type { Session } from '../shared/session.ts';
import { isConnectionLoss, toCliError } from '../shared/temporalErrors.ts';

/**
 * Timeout of a command (ms). A set with a running worker answers sooner: a command takes two
 * workflows and a few activities.
 */
const COMMAND_TIMEOUT_MS = 10_000;
/** Time to wait before a server that did not answer is called again (ms). */
const RECONNECT_MS = 200;

/** Set that receives a command. */
export type CommandedSet = Pick<WorkflowExecutionDescription, 'workflowId' | 'taskQueue'>;

/**
 * Describes the set of a workflow ID. Returns `undefined` if there never was one.
 * @throws CliError `conflict` if the ID is that of another workflow; `usage`, `unreachable`
 */
export async function describeSetById(
  session: Session,
  workflowId: string,
): Promise<WorkflowExecutionDescription | undefined> {
  const found = await describeWorkflow(session, workflowId);
  if (found !== undefined && found.type !== RUNNER_SET_WORKFLOW)
    throw new CliError(
      'conflict',
      `${workflowId} is not a set but a workflow of type ${found.type}`,
    );
  return found;
}

/**
 * Finds a running set.
 * @throws CliError `not_found`, also if the set has ended; `conflict` if it is paused in Temporal
 */
export async function runningSet(
  session: Session,
  nameOrId: string,
): Promise<WorkflowExecutionDescription> {
  const found = await describeResource(session, SET, nameOrId);
  if (!isOpen(found.status)) throw ended(nameOf(found.workflowId));
  const paused = pauseInfo(found);
  if (paused !== undefined) throw pausedError(found.workflowId, paused);
  return found;
}

/** Returns the error of a command for a set that is paused in Temporal. */
export function pausedError(workflowId: string, pause: PauseInfo): CliError {
  return new CliError(
    'conflict',
    `set ${nameOf(workflowId)} is paused ${pauseText(pause)} and processes no commands; resume it with "temporal workflow unpause --workflow-id ${workflowId}"`,
  );
}

/**
 * Queries the workflow.
 * @param args - arguments of the query
 * @returns `undefined` if no worker answers in time
 * @throws CliError `not_found`, `usage`
 */
export async function querySet<T>(
  session: Session,
  workflowId: string,
  query: string,
  ...args: unknown[]
): Promise<T | undefined> {
  try {
    return await session.attemptUntilDelivered(
      (client) => client.workflow.getHandle(workflowId).query<T, unknown[]>(query, ...args),
      QUERY_TIMEOUT_MS,
    );
  } catch (error) {
    const known = setError(error, session, workflowId);
    if (known.code === 'not_found' || known.code === 'usage') throw known;
    return undefined;
  }
}

/**
 * Queries the status of a set.
 * @param request - runners to include.
 * @default all
 * @returns the status, or the error of a set that no worker has admitted yet; `undefined` if no
 * worker answers in time
 * @throws CliError `not_found`, `usage`
 */
export async function querySetState(
  session: Session,
  workflowId: string,
  request?: SetStatusRequest,
): Promise<RunnerSetStatus | SetNotAdmittedError | undefined> {
  try {
    return await session.attemptUntilDelivered(
      async (client) =>
        await (request === undefined
          ? queryWholeSetStatus(client, workflowId)
          : querySetStatus(client, workflowId, request)),
      QUERY_TIMEOUT_MS,
    );
  } catch (error) {
    if (error instanceof SetNotAdmittedError) return error;
    const known = setError(error, session, workflowId);
    if (known.code === 'not_found' || known.code === 'usage') throw known;
    return undefined;
  }
}

/**
 * Queries the status like {@link querySetState}, but returns `undefined` for a set that no worker
 * has admitted yet.
 */
export async function queryAdmittedSet(
  ...call: Parameters<typeof querySetState>
): Promise<RunnerSetStatus | undefined> {
  const status = await querySetState(...call);
  return status instanceof SetNotAdmittedError ? undefined : status;
}

/**
 * Sends a command to the set and waits for its result.
 * @throws CliError; `invalid_input` and `failed` with the set's message, `not_found` if the set has
 * ended
 */
export async function runSetCommand(
  session: Session,
  set: CommandedSet,
  command: SetCommand,
): Promise<SetCommandResult> {
  const deadline = performance.now() + COMMAND_TIMEOUT_MS;
  const remaining = (): number => Math.max(1, deadline - performance.now());
  const name = nameOf(set.workflowId);
  const options = optionsFor(set, command);
  let isKept = false;
  for (;;) {
    try {
      if (!isKept)
        await session.attempt(
          (client) => client.workflow.start(SET_COMMAND_WORKFLOW, options),
          remaining(),
        );
      isKept = true;
      return await session.attempt(
        (client) =>
          client.workflow.getHandle(options.workflowId).result() as Promise<SetCommandResult>,
        remaining(),
      );
    } catch (error) {
      if (error instanceof WorkflowFailedError) throw rejection(error, name);
      if (!isConnectionLoss(error)) throw setError(error, session, set.workflowId);
      if (remaining() > RECONNECT_MS) await delay(RECONNECT_MS);
      else throw isKept ? timeoutError(name, error) : setError(error, session, set.workflowId);
    }
  }
}

/**
 * Starts a command to the set without waiting for its result. Temporal keeps it until a worker
 * runs.
 * @throws CliError
 */
export async function submitSetCommand(
  session: Session,
  set: CommandedSet,
  command: SetCommand,
): Promise<void> {
  await session.call(
    (client) => client.workflow.start(SET_COMMAND_WORKFLOW, optionsFor(set, command)),
    { workflowId: set.workflowId },
  );
}

const optionsFor = (
  { workflowId, taskQueue }: CommandedSet,
  command: SetCommand,
): WorkflowStartOptions => setCommandOptions(nameOf(workflowId), command, taskQueue);

/** Maps an error of the client to an error about a set. */
export function setError(error: unknown, session: Session, workflowId: string): CliError {
  const name = nameOf(workflowId);
  if (error instanceof WorkflowNotFoundError) {
    return /already completed/i.test(error.message)
      ? ended(name, error)
      : new CliError(
          'not_found',
          `no set ${name} in namespace ${session.settings.namespace}; see "holdfast set list --all"`,
          { cause: error },
        );
  }
  return toCliError(error, session.errorSubject(workflowId));
}

const ended = (name: string, cause?: unknown): CliError =>
  new CliError(
    'not_found',
    `set ${name} has already ended; see it with "holdfast set get ${name}"`,
    { cause },
  );

function rejection(error: WorkflowFailedError, name: string): CliError {
  const { cause } = error;
  const type = cause instanceof ApplicationFailure ? cause.type : undefined;
  const message = cause?.message ?? error.message;
  if (type === FAILURE_TYPES.setNotFound) return ended(name, error);
  if (type === FAILURE_TYPES.setUnresponsive)
    return new CliError('failed', message, { cause: error });
  return new CliError(
    type === FAILURE_TYPES.invalidInput ? 'invalid_input' : 'failed',
    `set ${name} rejected the command: ${message}`,
    { cause: error },
  );
}

/** Returns the error for a command that needs a worker when none answers. */
function timeoutError(name: string, cause: unknown): CliError {
  return new CliError(
    'failed',
    `set ${name}: no worker answered within ${COMMAND_TIMEOUT_MS / 1_000} s; Temporal keeps the command, which takes effect once a worker runs ("holdfast worker"); see "holdfast set get ${name}"`,
    { cause },
  );
}

/** Returns the name of a set for its workflow ID: `set-linux` → `linux`. */
export const nameOf = (workflowId: string): string =>
  workflowId.startsWith(setWorkflowId(''))
    ? workflowId.slice(setWorkflowId('').length)
    : workflowId;
