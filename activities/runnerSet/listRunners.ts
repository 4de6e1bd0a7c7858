/** Lists the running runners of a set from visibility. */
import { activityInfo, getClient } from '@temporalio/activity';
import type { WorkflowExecutionInfo } from '@temporalio/client';
import { executionInfoFromRaw } from '@temporalio/client/lib/helpers.js';
import { z } from 'zod';
import { SEARCH_ATTRIBUTES, SET_RUNNER_MEMO, type RunnerPhase } from '../../core/contract/index.ts';
import type { ListedRunner, SetActivities } from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { quoteLiteral, runningRunnersQuery } from '../../core/domain/visibility.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';

const runnerMemo = z.object({
  templateHash: z.string(),
  ephemeral: z.boolean(),
  slot: z.number().optional(),
});

/** Maximum runners per page. Each is about 250 bytes. Temporal rejects results of 2 MiB. */
const PAGE = 1_000;

/**
 * Returns one page of the running runners of a set, and the time of the check (ms since the epoch).
 */
export const listRunners: SetActivities['listRunners'] = async ({ set, page }) => {
  const at = Date.now();
  const found = await withHeartbeats('list of runners', async () => await list(set, page));
  return { at, ...found };
};

/**
 * Uses the raw API: the list of the client cannot continue where another attempt or worker stopped.
 */
async function list(set: string, page = ''): Promise<{ runners: ListedRunner[]; next?: string }> {
  const client = getClient();
  const { namespace, loadedDataConverter } = client.options;
  const { executions, nextPageToken } = await client.workflowService.listWorkflowExecutions({
    namespace,
    query: `${runningRunnersQuery(activityInfo().taskQueue)} AND ${SEARCH_ATTRIBUTES.set.name} = ${quoteLiteral(set)}`,
    pageSize: PAGE,
    nextPageToken: Buffer.from(page, 'base64'),
  });
  const infos = await Promise.all(
    executions.map(
      async (raw) => await executionInfoFromRaw(raw, loadedDataConverter, raw, namespace),
    ),
  );
  const next = Buffer.from(nextPageToken ?? []).toString('base64');
  return { runners: infos.map(listedRunner), ...(next === '' ? {} : { next }) };
}

function listedRunner({
  workflowId,
  startTime,
  typedSearchAttributes,
  memo,
}: WorkflowExecutionInfo): ListedRunner {
  const { templateHash, ephemeral, slot } =
    runnerMemo.safeParse(memo?.[SET_RUNNER_MEMO]).data ?? {};
  return {
    workflowId,
    phase: (typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase) ?? 'Requested') as RunnerPhase,
    startedAt: startTime.getTime(),
    ...omitUndefined({
      runnerName: typedSearchAttributes.get(SEARCH_ATTRIBUTES.name),
      templateHash,
      ephemeral,
      slot,
    }),
  };
}
