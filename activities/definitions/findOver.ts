/** For which change sets nothing runs any more: by Temporal's own record of each, in case a word of theirs was lost or they were ended from outside. */
import { getClient, log } from '@temporalio/activity';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { DefinitionActivities, OverTurn } from '../../core/activities/index.ts';
import { jobGroupStatusQuery, type JobGroupStatus } from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { each } from '../runnerSet/forEachLimited.ts';

/** A group that nobody answers for now says nothing about its runs. */
const QUERY_DEADLINE_MS = 5_000;

export const findOver: DefinitionActivities['findOver'] = async ({ groups }) => {
  const over: OverTurn[] = [];
  await withHeartbeats(
    `${groups.length} change sets`,
    async () =>
      await each(groups, async (group) => {
        const end = await endOf(getClient(), group);
        if (end !== undefined) over.push({ group, ...end });
      }),
  );
  return { over };
};

/** The run of a group that was ended from outside goes on without it, and has its turn as long. @returns `undefined`: it is not over */
async function endOf(client: Client, group: string): Promise<Omit<OverTurn, 'group'> | undefined> {
  const isRunning = await runs(client, group);
  if (isRunning === undefined) return {};
  const status = await statusOf(client, group);
  if (status === undefined || (isRunning && status.waits)) return undefined;
  if (status.running === undefined) return defined({ outcome: status.outcome });
  return isRunning || (await runs(client, status.running.workflowId)) === true ? undefined : {};
}

/** @returns `undefined`: there is none */
async function runs(client: Client, workflowId: string): Promise<boolean | undefined> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).status.name === 'RUNNING';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Of one that has ended it is what held then. @returns `undefined`: nobody answers for it now */
async function statusOf(client: Client, group: string): Promise<JobGroupStatus | undefined> {
  try {
    return await client.withDeadline(
      Date.now() + QUERY_DEADLINE_MS,
      async () => await client.workflow.getHandle(group).query(jobGroupStatusQuery),
    );
  } catch (error) {
    log.info(
      'The runs of a change set do not say how they are: they keep their turn until the next look',
      { group, why: String(error) },
    );
    return undefined;
  }
}
