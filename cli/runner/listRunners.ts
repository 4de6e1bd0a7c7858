/** Implements `holdfast runner list`. */
import type { RunnerEnd } from '../shared/followRunner.ts';
import type { Output } from '../shared/output.ts';
import { withTerminationDetails } from '../shared/terminationDetails.ts';
import { toRow, type RunnerRow } from '../shared/runnerRow.ts';
import { selectionQuery, type Selection } from '../shared/selection.ts';
import { listWorkflows, printList } from '../shared/resource.ts';
import { RUNNER } from '../shared/resourceKind.ts';
import type { Session } from '../shared/session.ts';
import { listTable, type Column } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';

/** Row of the list of runners. */
export interface ListedRow extends RunnerRow {
  /** End of the runner, if it has no verdict. */
  readonly end?: RunnerEnd;
}

/** Lists the selected runners, newest first. */
export async function selectRunners(
  session: Session,
  selection: Selection,
  limit: number,
): Promise<{ rows: RunnerRow[]; more: boolean }> {
  const { found, more } = await listWorkflows(session, selectionQuery(selection), limit);
  return { rows: found.map(toRow), more };
}

/** Prints the newest runners of a selection, and notes whether there are more than `limit`. */
export async function listRunners(
  session: Session,
  output: Output,
  selection: Selection,
  limit: number,
): Promise<void> {
  const { rows: found, more } = await selectRunners(session, selection, limit);
  const rows = await withTerminationDetails(session, found);
  const all = selection.all === true || selection.outcome !== undefined;
  printList(session, output, {
    kind: RUNNER,
    rows,
    more,
    limit,
    query: selectionQuery(selection),
    lines: () => [runnerTable(rows, Date.now(), output.wide)],
    none: all ? 'no runners' : 'no running runners (--all includes ended ones)',
  });
}

/**
 * Returns the table of runners.
 * @param now - current time, for the ages (ms since the epoch)
 */
export function runnerTable(rows: readonly ListedRow[], now: number, wide = false): string {
  const columns: Column<ListedRow>[] = [
    { head: 'ID', cell: ({ id }) => id },
    { head: 'PHASE', cell: ({ phase }) => phase },
    { head: 'SCOPE', cell: ({ scope }) => scope },
    { head: 'SET', cell: ({ set }) => set },
    { head: 'AGE', cell: ({ startedAt }) => formatAge(now - Date.parse(startedAt)) },
    { head: 'OUTCOME', cell: outcomeOf },
    { head: 'NAME', cell: ({ name }) => name, wide: true },
    { head: 'STATUS', cell: ({ status }) => status.toLowerCase(), wide: true },
    { head: 'STARTED', cell: ({ startedAt }) => startedAt, wide: true },
    { head: 'ENDED', cell: ({ endedAt }) => endedAt, wide: true },
    ...(rows.some(({ end }) => end !== undefined) ? [{ head: 'NOTE', cell: noteOf }] : []),
  ];
  return listTable(columns, rows, wide);
}

/** Returns outcome and cause, such as `aborted/run_timeout`; `-` while it runs. */
export function outcomeOf({ outcome, cause }: RunnerRow): string {
  return [outcome ?? '-', cause].filter((part) => part !== undefined).join('/');
}

const noteOf = ({ end }: ListedRow): string | undefined =>
  end && [end.message, end.sweep].filter(Boolean).join('; ');
