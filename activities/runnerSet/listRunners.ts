/** Lists the running runners of a set from visibility. */
import { activityInfo, getClient } from '@temporalio/activity';
import type { WorkflowExecutionInfo } from '@temporalio/client';
import { executionInfoFromRaw } from '@temporalio/client/lib/helpers.js';
import { z } from 'zod';
import { SEARCH_ATTRIBUTES, SET_RUNNER_MEMO, type RunnerPhase } from '../../core/contract/index.ts';
import type { ListedRunner, SetActivities } from '../../core/activities/index.ts';
import { comparableText, stateOfPhase } from '../../core/domain/knownRunner.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { quoteLiteral, runningRunnersQuery } from '../../core/domain/visibility.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';

const runnerMemo = z.object({
  templateHash: z.string(),
  ephemeral: z.boolean(),
  slot: z.number().optional(),
});

/** Runners per request. */
const PAGE = 1_000;
/** Maximum changed runners before the last page of a part. Each is about 250 bytes. */
const MAX_CHANGED = 1_000;

/**
 * Lists the running runners of a set that are not as the set knows them.
 * @returns the time of the start of the check (ms since the epoch) and the changed runners. `next`
 * if there are more than Temporal accepts in one result
 */
export const listRunners: SetActivities['listRunners'] = async ({ set, known = [], page }) => {
  const at = Date.now();
  const list = new ChangedRunners(set, known);
  const next = await withHeartbeats('list of runners', async () => await list.read(page));
  return { at, runners: list.changed, unconfirmed: list.unconfirmed(), ...omitUndefined({ next }) };
};

/** Part of a list, without the runners that are as the set knows them. */
class ChangedRunners {
  readonly changed: ListedRunner[] = [];
  readonly #set: string;
  readonly #known: ReadonlyMap<string, number>;
  readonly #confirmed = new Set<number>();

  constructor(set: string, known: readonly string[]) {
    this.#set = set;
    this.#known = new Map(known.map((text, index) => [text, index]));
  }

  unconfirmed(): number[] {
    return [...this.#known.values()].filter((index) => !this.#confirmed.has(index));
  }

  /** Reads pages until enough runners have changed. @returns where to go on, if there are more */
  async read(page?: string): Promise<string | undefined> {
    for (let from = page; ;) {
      const { runners, next } = await readPage(this.#set, from);
      for (const runner of runners) this.#add(runner);
      if (next === undefined || this.changed.length >= MAX_CHANGED) return next;
      from = next;
    }
  }

  #add(runner: ListedRunner): void {
    const state = stateOfPhase(runner.phase);
    const index = this.#known.get(comparableText(this.#set, { ...runner, state }));
    if (index === undefined) this.changed.push(runner);
    else this.#confirmed.add(index);
  }
}

/**
 * Reads a page. It uses the raw API: the list of the client cannot continue where another attempt
 * or worker stopped.
 */
async function readPage(
  set: string,
  page = '',
): Promise<{ runners: ListedRunner[]; next?: string }> {
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
