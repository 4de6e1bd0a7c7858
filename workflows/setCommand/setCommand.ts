import {
  ActivityFailure,
  ApplicationFailure,
  condition,
  getExternalWorkflowHandle,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import {
  setCommandReplySignal,
  setCommandSignal,
  setWorkflowId,
  type SetCommandResult,
  type SetCommandInput,
  type SetCommandReply,
  type SetCommandRequest,
} from '../../core/contract/index.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { escapeMarkdown } from '../../core/domain/displayText.ts';
import { temporalActivities, workerActivities } from '../shared/activityProxies.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Time after which a set that has not responded is checked for (ms). */
const CHECK_INTERVAL_MS = 10_000;
/** Maximum number of such checks. A set with a running worker responds in milliseconds. */
const MAX_CHECKS = 6;

/**
 * Sends one command to a set and completes with its response. Both directions use signals, which
 * Temporal stores, so neither side has to be running at the moment of the command.
 *
 * @param input - validated in the first step
 * @returns the set's description of itself after it has executed the command
 * @throws ApplicationFailure (non-retryable) `InvalidInput`; `SetNotFound` if no set of that name
 * is running; `SetCommandRejected` if the set is being drained or has no such runner;
 * `SetUnresponsive` if the set has received the command and executes it when it continues
 */
export async function setCommand(input: SetCommandInput): Promise<SetCommandResult> {
  const { workflowId } = workflowInfo();
  let reply: SetCommandReply | undefined;
  setHandler(setCommandReplySignal, (body: unknown) => void (reply ??= parseReply(body)), {
    description: "The set's answer",
  });
  const { set, ...command } = await admit(input);
  setCurrentDetails(`Command for the set **${escapeMarkdown(set)}**: ${command.command}`);
  await send(set, { workflowId, command });
  for (let check = 0; check < MAX_CHECKS; check++) {
    await condition(() => reply !== undefined, CHECK_INTERVAL_MS, {
      summary: 'Wait for the answer of the set',
    });
    if (reply !== undefined) return resultFrom(reply);
    const isGone = await setHasEnded(set);
    // A response that the set sent before it ended counts.
    if (reply !== undefined) return resultFrom(reply);
    if (isGone) throw fail(FAILURE_TYPES.setNotFound, `the set ${set} ended before it answered`);
  }
  throw fail(
    FAILURE_TYPES.setUnresponsive,
    `the set ${set} received the command and did not answer within ${formatDuration(MAX_CHECKS * CHECK_INTERVAL_MS)}; it takes effect when the set continues; find the reason with "temporal workflow describe --workflow-id ${setWorkflowId(set)}"`,
  );
}

/**
 * Validates the command in a regular activity, not a local one: many concurrent local activities in
 * a worker without room in its cache would wait until its workflow tasks time out.
 */
async function admit(input: unknown): Promise<SetCommandInput> {
  try {
    return await workerActivities('Validate the command').admitSetCommand({ input });
  } catch (error) {
    // Throw the failure without the surrounding activity failure.
    if (error instanceof ActivityFailure && error.cause instanceof ApplicationFailure)
      throw fail(error.cause.type ?? FAILURE_TYPES.invalidInput, error.cause.message);
    throw error;
  }
}

/**
 * Sends the command. Temporal accepts the signal for a running workflow, even if no worker is
 * available for that workflow now.
 */
async function send(set: string, request: SetCommandRequest): Promise<void> {
  try {
    await getExternalWorkflowHandle(setWorkflowId(set)).signal(setCommandSignal, request);
  } catch (error) {
    if (isCancellation(error)) throw error;
    if (await setHasEnded(set))
      throw fail(FAILURE_TYPES.setNotFound, `no set ${set} runs: see "holdfast set list"`);
    throw fail(
      FAILURE_TYPES.setUnresponsive,
      `the set ${set} takes no command now, and nothing was done: ${errorMessage(error)}`,
    );
  }
}

async function setHasEnded(set: string): Promise<boolean> {
  const { ended } = await temporalActivities('Check that the set runs').findEndedRunners({
    workflowIds: [setWorkflowId(set)],
  });
  return ended.length > 0;
}

/** Parses the response. A sender may put anything into a signal. */
function parseReply(body: unknown): SetCommandReply | undefined {
  if (!isObject(body)) return undefined;
  const { result, error } = body;
  const isError =
    isObject(error) && typeof error['type'] === 'string' && typeof error['message'] === 'string';
  if (isObject(result)) return { result: result as unknown as SetCommandResult };
  return isError ? (body as unknown as SetCommandReply) : undefined;
}

function resultFrom(reply: SetCommandReply): SetCommandResult {
  if ('result' in reply) return reply.result;
  throw fail(reply.error.type, reply.error.message);
}

function fail(type: string, message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, type);
}
