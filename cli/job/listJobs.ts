/** Implements `holdfast job list`. */
import { JOB_WORKFLOW } from '../../core/contract/index.ts';
import { quoteLiteral } from '../../core/domain/visibility.ts';
import { OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import { outcomeOf } from '../runner/listRunners.ts';
import { toRow, type RunnerRow } from '../shared/runnerRow.ts';
import { listWorkflows, printList } from '../shared/resource.ts';
import { JOB } from '../shared/resourceKind.ts';
import type { Session } from '../shared/session.ts';
import type { Output } from '../shared/output.ts';
import { listTable, type Column } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';

/** Selection of jobs. */
export interface JobSelection {
  readonly name?: string;
  readonly scope?: string;
  /** Whether ended jobs are included. @default false */
  readonly all?: boolean;
}

/** Returns the list filter for a selection. */
export function jobsQuery({ name, scope, all = false }: JobSelection): string {
  return [
    `WorkflowType = ${quoteLiteral(JOB_WORKFLOW)}`,
    ...(all ? [] : [OPEN_FILTER]),
    ...(name === undefined ? [] : [`RunnerName = ${quoteLiteral(name)}`]),
    ...(scope === undefined ? [] : [`RunnerScope = ${quoteLiteral(scope)}`]),
  ].join(' AND ');
}

/** Lists the selected jobs, newest first. */
export async function selectJobs(
  session: Session,
  selection: JobSelection,
  limit: number,
): Promise<{ rows: RunnerRow[]; more: boolean }> {
  const { found, more } = await listWorkflows(session, jobsQuery(selection), limit);
  return { rows: found.map(toRow), more };
}

/** Prints the newest jobs of a selection, and notes whether there are more than `limit`. */
export async function listJobs(
  session: Session,
  output: Output,
  selection: JobSelection,
  limit: number,
): Promise<void> {
  const { rows, more } = await selectJobs(session, selection, limit);
  printList(session, output, {
    kind: JOB,
    rows,
    more,
    limit,
    query: jobsQuery(selection),
    lines: () => [jobTable(rows, Date.now(), output.wide)],
    none: selection.all === true ? 'no jobs' : 'no running jobs (--all includes ended ones)',
  });
}

/**
 * Returns the table of jobs.
 * @param now - current time, for the ages (ms since the epoch)
 */
export function jobTable(rows: readonly RunnerRow[], now: number, wide = false): string {
  const columns: Column<RunnerRow>[] = [
    { head: 'ID', cell: ({ id }) => id },
    { head: 'JOB', cell: ({ name }) => name },
    { head: 'STAGE', cell: ({ phase }) => phase },
    { head: 'SCOPE', cell: ({ scope }) => scope },
    { head: 'AGE', cell: ({ startedAt }) => formatAge(now - Date.parse(startedAt)) },
    { head: 'OUTCOME', cell: outcomeOf },
    { head: 'STATUS', cell: ({ status }) => status.toLowerCase(), wide: true },
    { head: 'STARTED', cell: ({ startedAt }) => startedAt, wide: true },
    { head: 'ENDED', cell: ({ endedAt }) => endedAt, wide: true },
  ];
  return listTable(columns, rows, wide);
}
