/** Starts the runners of a set, as workflows on the task queue of the set. */
import { activityInfo, getClient } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  SET_RUNNER_MEMO,
  type SetRunnerMemo,
} from '../../core/contract/index.ts';
import type { StartRunnersInput, Timestamped } from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { PRIORITY_KEYS } from '../../core/domain/setPriority.ts';
import { withSlotClaims } from '../../core/domain/volumeSlots.ts';
import { grpcStatus } from '../shared/grpcStatus.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { withTraceparent } from '../shared/withTraceparent.ts';
import { forEachLimited } from './forEachLimited.ts';

/**
 * gRPC codes of a request that no retry can fix: INVALID_ARGUMENT, NOT_FOUND (the namespace),
 * PERMISSION_DENIED, FAILED_PRECONDITION, UNAUTHENTICATED.
 */
const FINAL_CODES: ReadonlySet<number> = new Set([3, 5, 7, 9, 16]);

/**
 * Starts the runners of a set.
 * @returns the workflow IDs that Temporal rejected permanently, and the reason of the last
 * rejection
 * @throws the first other failure, after all runners have been tried
 */
export async function startRunners(
  input: StartRunnersInput,
): Promise<Timestamped & { rejected: string[]; message?: string }> {
  const rejected: string[] = [];
  let message: string | undefined;
  await withHeartbeats(
    `${input.runners.length} runners to start`,
    async () =>
      await forEachLimited(input.runners, async (runner) => {
        const refusal = await start(input, runner);
        if (refusal === undefined) return;
        rejected.push(runner.workflowId);
        message = refusal;
      }),
  );
  return { at: Date.now(), rejected, ...omitUndefined({ message }) };
}

/**
 * Starts a runner. A workflow that already exists with this ID counts as started, even if it has
 * ended.
 * @returns the reason if Temporal rejects it permanently
 */
async function start(
  {
    set,
    templateHash,
    ephemeral,
    template,
    notifyBusy,
    notifyEndEarly,
    endMayWait,
    priority,
  }: StartRunnersInput,
  { workflowId, slot, traceparent }: StartRunnersInput['runners'][number],
): Promise<string | undefined> {
  const memo: SetRunnerMemo = {
    templateHash,
    ephemeral,
    ...omitUndefined({
      slot,
      notifyBusy: notifyBusy || undefined,
      notifyEndEarly: notifyEndEarly || undefined,
      endMayWait: endMayWait || undefined,
    }),
  };
  try {
    await withTraceparent(
      traceparent,
      async () =>
        await getClient().workflow.start(RUNNER_WORKFLOW, {
          workflowId,
          taskQueue: activityInfo().taskQueue,
          args: [withSlotClaims(template, set, slot)],
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          memo: { [SET_RUNNER_MEMO]: memo },
          priority: { priorityKey: PRIORITY_KEYS[priority] },
          // From the start, so that no list of the set's runners misses it.
          typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.set, value: set }],
          staticSummary: `runner of the set ${set}`,
          // If this worker has a free slot, the response contains the first workflow task.
          requestEagerStart: true,
        }),
    );
    return undefined;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return undefined;
    const status = grpcStatus(error);
    if (status !== undefined && FINAL_CODES.has(status.code))
      return `Temporal rejected the runner: ${status.details}`;
    throw error;
  }
}
