/** Implements `holdfast set list`. */
import type { WorkflowExecutionInfo } from '@temporalio/client';
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
import { isOpen, OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import type { Output } from '../shared/output.ts';
import { listWorkflows, printList } from '../shared/resource.ts';
import { SET } from '../shared/resourceKind.ts';
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

/**
 * Row of the list of sets. Fields that need a worker are absent if no worker answers (`note` then
 * says so) or if the set has ended.
 */
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
  /** Status in Temporal: RUNNING, COMPLETED, … */
  readonly status: string;
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly scope?: string;
  readonly labels?: readonly string[];
  readonly runners?: Readonly<Record<SetRunnerStatus['state'], number>>;
  /** Task queues with waiting tasks that no worker polls. */
  readonly unpolledQueues: readonly UnpolledQueue[];
  readonly note?: string;
}

/** Query for all sets. A run that continued as new is not the end of its set. */
const SETS = `WorkflowType = "${RUNNER_SET_WORKFLOW}" AND ExecutionStatus != "ContinuedAsNew"`;
const RUNNING_SETS = `WorkflowType = "${RUNNER_SET_WORKFLOW}" AND ${OPEN_FILTER}`;

/** Selection of sets. */
export interface SetSelection {
  /**
   * Whether ended sets are included.
   * @default false
   */
  readonly all?: boolean;
}

/** Maximum length of a failure's message in the table (characters). */
const NOTE_WIDTH = 100;
/** Maximum number of sets that are queried concurrently. */
const AT_ONCE = 10;

/**
 * Prints the sets of the namespace, sorted by name.
 * @throws CliError `unreachable`, `usage`
 */
export async function listSets(
  session: Session,
  output: Output,
  selection: SetSelection,
  limit: number,
): Promise<void> {
  const { rows, more } = await readSets(session, selection, limit);
  printList(session, output, {
    kind: SET,
    rows,
    more,
    limit,
    query: setsQuery(selection),
    lines: () => [setTable(rows, Date.now(), output.wide), ...unpolledLines(distinct(rows))],
    none:
      selection.all === true
        ? 'no sets; create them with "holdfast set apply"'
        : 'no running sets (--all includes ended ones); create them with "holdfast set apply"',
  });
  const silent = rows.filter(({ note }) => note !== undefined).length;
  if (silent > 0 && !output.json)
    output.note(
      'silent',
      `${silent} of ${rows.length} sets did not answer; check that a worker runs ("holdfast worker")`,
    );
}

/** Returns the list filter for a selection. */
export const setsQuery = ({ all = false }: SetSelection): string => (all ? SETS : RUNNING_SETS);

/**
 * Reads the sets of the namespace, sorted by name.
 * @throws CliError
 */
export async function readSets(
  session: Session,
  selection: SetSelection,
  limit: number,
): Promise<{ rows: SetRow[]; more: boolean }> {
  const { found, more } = await listWorkflows(session, setsQuery(selection), limit);
  const polled = createPollerCheck(session);
  const rows = await pMap(found, async (info) => await withStatus(session, polled, rowOf(info)), {
    concurrency: AT_ONCE,
  });
  return { rows: rows.toSorted((a, b) => (a.name < b.name ? -1 : 1)), more };
}

function rowOf(info: WorkflowExecutionInfo): Omit<SetRow, 'unpolledQueues'> {
  const { workflowId, runId, status, startTime, closeTime, memo } = info;
  const { labels, scope } = parseRoutingMemo(memo) ?? {};
  return {
    id: workflowId,
    name: nameOf(workflowId),
    runId,
    status: status.name,
    startedAt: startTime.toISOString(),
    ...omitUndefined({ labels, scope, endedAt: closeTime?.toISOString() }),
  };
}

async function withStatus(
  session: Session,
  polled: PollCheck,
  row: Omit<SetRow, 'unpolledQueues'>,
): Promise<SetRow> {
  if (!isOpen({ name: row.status })) return { ...row, unpolledQueues: [] };
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

/** Removes duplicates, because sets share task queues. */
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

/**
 * Returns the cell of an unknown value: `?` for a running set, because no worker answered, and no
 * value (shown as `-`) for a set that has ended.
 */
const unknown = ({ status }: SetRow): string | undefined =>
  isOpen({ name: status }) ? '?' : undefined;

function bounds(row: SetRow): string | undefined {
  const { min, max } = row;
  if (min === undefined || max === undefined) return unknown(row);
  return min === max ? String(max) : `${min}-${max}`;
}

/**
 * Formats the table of sets.
 * @param now - current time, for the ages (ms since the epoch)
 */
export function setTable(rows: readonly SetRow[], now: number, wide = false): string {
  const count =
    (read: (row: SetRow) => number | undefined) =>
    (row: SetRow): string | undefined =>
      read(row)?.toString() ?? unknown(row);
  const columns: Column<SetRow>[] = [
    { head: 'NAME', cell: ({ name }) => name },
    { head: 'WANTED', cell: count(({ desired }) => desired) },
    { head: 'BOUNDS', cell: bounds },
    { head: 'STARTING', cell: count(({ runners }) => runners?.starting) },
    { head: 'IDLE', cell: count(({ runners }) => runners?.idle) },
    { head: 'BUSY', cell: count(({ runners }) => runners?.busy) },
    { head: 'DRAINING', cell: count(({ runners }) => runners?.draining) },
    { head: 'QUEUED', cell: count(({ jobs }) => jobs?.queued) },
    { head: 'RUNNING', cell: count(({ jobs }) => jobs?.running) },
    { head: 'SCOPE', cell: ({ scope }) => scope },
    { head: 'AGE', cell: ({ startedAt }) => formatAge(now - Date.parse(startedAt)) },
    { head: 'ID', cell: ({ id }) => id, wide: true },
    { head: 'LABELS', cell: ({ labels }) => labels?.join(','), wide: true },
    { head: 'TEMPLATE', cell: ({ templateHash }) => templateHash, wide: true },
    { head: 'WAITS FOR', cell: ({ waitingFor }) => waitingFor, wide: true },
    {
      head: 'NOTE',
      cell: (row) => noteOf(row, wide),
    },
  ];
  return listTable(columns, rows, wide);
}

function noteOf(row: SetRow, wide: boolean): string | undefined {
  if (!isOpen({ name: row.status })) return row.status.toLowerCase();
  if (row.note !== undefined) return row.note;
  if (row.deleting !== undefined) return 'is being deleted';
  return blockedNote(row, wide) ?? unpolledNote(row.unpolledQueues);
}

/**
 * Returns the reason and the last failure with its runner. The message is truncated, except in the
 * wide form.
 */
function blockedNote({ blockedReason, lastFailure }: SetRow, wide: boolean): string | undefined {
  if (blockedReason === undefined || lastFailure === undefined) return blockedReason;
  const why = wide ? lastFailure.message : truncate(lastFailure.message, NOTE_WIDTH);
  return `${blockedReason}: ${why} (${lastFailure.runner})`;
}

const unpolledNote = ([first]: readonly UnpolledQueue[]): string | undefined =>
  first && `no worker polls ${first.taskQueue}`;
