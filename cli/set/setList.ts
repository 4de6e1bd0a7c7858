/** `holdfast set list` */
import pMap from 'p-map';
import { SetNotAdmittedError } from '../../activities/runnerSet/querySetStatus.ts';
import { parseRoutingMemo } from '../../activities/runnerSet/listRoutingInfo.ts';
import {
  RUNNER_SET_WORKFLOW,
  type RunnerSetStatus,
  type SetRunnerStatus,
} from '../../core/contract/index.ts';
import { truncate } from '../../core/domain/displayText.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import type { Output } from '../shared/output.ts';
import type { Session } from '../shared/session.ts';
import { pauseInfo, pauseText } from '../../worker/temporal/pauseInfo.ts';
import { pendingActivities } from '../shared/pendingActivities.ts';
import {
  createPollerCheck,
  unpolledLines,
  unpolledQueues,
  type PollCheck,
  type UnpolledQueue,
} from '../shared/unpolledQueues.ts';
import { querySetState, describeSetById, nameOf } from './setClient.ts';
import { listTable, type Column } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** A running set. What only a worker can say is absent when none answers; `note` says so then. */
export interface SetRow extends Partial<
  Pick<
    RunnerSetStatus,
    | 'templateHash'
    | 'desired'
    | 'min'
    | 'max'
    | 'jobs'
    | 'blockedReason'
    | 'waitingFor'
    | 'lastFailure'
    | 'deleting'
  >
> {
  readonly id: string;
  readonly name: string;
  readonly runId: string;
  readonly startedAt: string;
  readonly scope?: string;
  readonly labels?: readonly string[];
  readonly runners?: Readonly<Record<SetRunnerStatus['state'], number>>;
  /** Task queues with waiting tasks that no worker polls. */
  readonly unpolledQueues: readonly UnpolledQueue[];
  readonly note?: string;
}

const RUNNING_SETS = `WorkflowType = "${RUNNER_SET_WORKFLOW}" AND ${OPEN_FILTER}`;

/** Characters of a failure's message in the table. */
const NOTE_WIDTH = 100;
/** Sets asked at once. */
const AT_ONCE = 10;

/** Lists the running sets of the namespace, by name. @throws CliError `unreachable`, `usage` */
export async function listSets(session: Session, output: Output, limit: number): Promise<void> {
  const { rows, more } = await readSets(session, limit);
  const ui = session.listLink(RUNNING_SETS);
  output.result(
    { sets: rows, more, ...omitUndefined({ ui }) },
    rows.length === 0
      ? []
      : [setTable(rows, Date.now(), output.wide), ...unpolledLines(distinct(rows))],
  );
  if (output.json) return;
  if (rows.length === 0) output.note('none', 'no sets; create them with "holdfast set apply"');
  if (more) output.note('more', `showing ${limit}; use --limit to show more`);
  const silent = rows.filter(({ note }) => note !== undefined).length;
  if (silent > 0)
    output.note(
      'silent',
      `${silent} of ${rows.length} sets did not answer; check that a worker runs ("holdfast worker")`,
    );
  if (ui !== undefined && rows.length > 0) output.note('ui', `in Temporal's UI: ${ui}`);
}

/** The running sets of the namespace, by name. @throws CliError */
export async function readSets(
  session: Session,
  limit: number,
): Promise<{ rows: SetRow[]; more: boolean }> {
  const found: Omit<SetRow, 'unpolledQueues'>[] = [];
  const polled = createPollerCheck(session);
  const more = await session.call(
    async (client) => {
      for await (const { workflowId, runId, startTime, memo } of client.workflow.list({
        query: RUNNING_SETS,
        pageSize: Math.min(limit + 1, 1_000),
      })) {
        if (found.length === limit) return true;
        const { labels, scope } = parseRoutingMemo(memo) ?? {};
        found.push({
          id: workflowId,
          name: nameOf(workflowId),
          runId,
          startedAt: startTime.toISOString(),
          ...omitUndefined({ labels, scope }),
        });
      }
      return false;
    },
    { timeoutMs: 60_000 },
  );
  const rows = await pMap(found, async (row) => await withStatus(session, polled, row), {
    concurrency: AT_ONCE,
  });
  return { rows: rows.toSorted((a, b) => (a.name < b.name ? -1 : 1)), more };
}

async function withStatus(
  session: Session,
  polled: PollCheck,
  row: Omit<SetRow, 'unpolledQueues'>,
): Promise<SetRow> {
  try {
    const description = await describeSetById(session, row.id);
    const unpolled =
      description === undefined
        ? []
        : await unpolledQueues(
            polled,
            description,
            await pendingActivities(description.raw, session.converter),
          );
    const paused = description && pauseInfo(description);
    if (paused !== undefined)
      return { ...row, unpolledQueues: unpolled, note: `paused ${pauseText(paused)}` };
    const status = await querySetState(session, row.id, { max: 0 });
    if (status instanceof SetNotAdmittedError)
      return { ...row, unpolledQueues: unpolled, note: status.message };
    return status === undefined
      ? { ...row, unpolledQueues: unpolled, note: 'no worker answered within 3 s' }
      : { ...row, unpolledQueues: unpolled, ...summarized(status) };
  } catch (error) {
    // The set has ended since it was listed, or does not know the query. List the others anyway.
    return {
      ...row,
      unpolledQueues: [],
      note: errorMessage(error),
    };
  }
}

/** Sets share their queues. */
function distinct(rows: readonly SetRow[]): UnpolledQueue[] {
  return [
    ...new Map(
      rows.flatMap(({ unpolledQueues }) => unpolledQueues).map((queue) => [queue.taskQueue, queue]),
    ).values(),
  ];
}

function summarized({
  templateHash,
  desired,
  min,
  max,
  jobs,
  blockedReason,
  waitingFor,
  lastFailure,
  deleting,
  labels,
  scope,
  runnerCounts: runners,
}: RunnerSetStatus): Partial<SetRow> {
  return {
    templateHash,
    desired,
    min,
    max,
    runners,
    jobs,
    labels,
    ...(scope === '' ? {} : { scope }),
    ...omitUndefined({ blockedReason, waitingFor, lastFailure, deleting }),
  };
}

const number = (value: number | undefined): string => (value === undefined ? '?' : String(value));
function bounds({ min, max }: SetRow): string {
  if (min === undefined || max === undefined) return '?';
  return min === max ? String(max) : `${min}-${max}`;
}

/** @param now - ms since the epoch, for the age */
export function setTable(rows: readonly SetRow[], now: number, wide = false): string {
  const columns: Column<SetRow>[] = [
    { head: 'NAME', cell: ({ name }) => name },
    { head: 'WANTED', cell: ({ desired }) => number(desired) },
    { head: 'BOUNDS', cell: bounds },
    { head: 'STARTING', cell: ({ runners }) => number(runners?.starting) },
    { head: 'IDLE', cell: ({ runners }) => number(runners?.idle) },
    { head: 'BUSY', cell: ({ runners }) => number(runners?.busy) },
    { head: 'LEAVING', cell: ({ runners }) => number(runners?.draining) },
    { head: 'QUEUED', cell: ({ jobs }) => number(jobs?.queued) },
    { head: 'RUNNING', cell: ({ jobs }) => number(jobs?.running) },
    { head: 'SCOPE', cell: ({ scope }) => scope },
    { head: 'AGE', cell: ({ startedAt }) => formatAge(now - Date.parse(startedAt)) },
    { head: 'ID', cell: ({ id }) => id, wide: true },
    { head: 'LABELS', cell: ({ labels }) => labels?.join(','), wide: true },
    { head: 'TEMPLATE', cell: ({ templateHash }) => templateHash, wide: true },
    { head: 'WAITS FOR', cell: ({ waitingFor }) => waitingFor, wide: true },
    {
      head: 'NOTE',
      cell: (row) =>
        row.note ??
        (row.deleting === undefined
          ? (blockedNote(row, wide) ?? unpolledNote(row.unpolledQueues))
          : 'is being deleted'),
    },
  ];
  return listTable(columns, rows, wide);
}

/** Reason, last failure and its runner; shortened, unless all columns are wanted. */
function blockedNote({ blockedReason, lastFailure }: SetRow, wide: boolean): string | undefined {
  if (blockedReason === undefined || lastFailure === undefined) return blockedReason;
  const why = wide ? lastFailure.message : truncate(lastFailure.message, NOTE_WIDTH);
  return `${blockedReason}: ${why} (${lastFailure.runner})`;
}

const unpolledNote = ([first]: readonly UnpolledQueue[]): string | undefined =>
  first && `no worker polls ${first.taskQueue}`;
