/** The running runners of a set, by Temporal's visibility. */
import { activityInfo, getClient } from '@temporalio/activity';
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

export const listRunners: SetActivities['listRunners'] = async ({ set }) => {
  const runners = await withHeartbeats('list of runners', async () => await list(set));
  return { at: Date.now(), runners };
};

async function list(set: string): Promise<ListedRunner[]> {
  const runners: ListedRunner[] = [];
  const query = `${runningRunnersQuery(activityInfo().taskQueue)} AND ${SEARCH_ATTRIBUTES.set.name} = ${quoteLiteral(set)}`;
  for await (const {
    workflowId,
    startTime,
    typedSearchAttributes,
    memo,
  } of getClient().workflow.list({ query, pageSize: 1_000 })) {
    const { templateHash, ephemeral, slot } =
      runnerMemo.safeParse(memo?.[SET_RUNNER_MEMO]).data ?? {};
    runners.push({
      workflowId,
      phase: (typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase) ?? 'Requested') as RunnerPhase,
      startedAt: startTime.getTime(),
      ...omitUndefined({
        runnerName: typedSearchAttributes.get(SEARCH_ATTRIBUTES.name),
        templateHash,
        ephemeral,
        slot,
      }),
    });
  }
  return runners;
}
