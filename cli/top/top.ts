/** Implements `holdfast top`, which prints a snapshot of all running sets, runners and jobs. */
import { JOB_WORKFLOW, RUNNER_PHASES, RUNNER_WORKFLOW } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { quoteLiteral } from '../../core/domain/visibility.ts';
import { jobTable, selectJobs } from '../job/listJobs.ts';
import { runnerTable, selectRunners } from '../runner/listRunners.ts';
import type { RunnerRow } from '../shared/runnerRow.ts';
import { FAILED_OR_ERRORED } from '../shared/selection.ts';
import { readSets, setTable, type SetRow } from '../set/setList.ts';
import type { Session } from '../shared/session.ts';
import type { Output } from '../shared/output.ts';

/** Period in which failed runners and jobs are counted (ms). */
const LOOK_BACK_MS = 3_600_000;

/** Running sets, runners and jobs. */
export interface Top {
  /** Time of the snapshot (ISO 8601). */
  readonly at: string;
  readonly sets: readonly SetRow[];
  readonly runners: readonly RunnerRow[];
  readonly jobs: readonly RunnerRow[];
  /** Whether any of the lists has more entries. */
  readonly more: boolean;
  /** Number of runners and jobs that ended `errored` or `failed` since then. */
  readonly endedBadly: { readonly since: string; readonly count: number; readonly ui?: string };
}

/** Prints the running sets, runners and jobs, at most `limit` of each. */
export async function showTop(session: Session, output: Output, limit: number): Promise<void> {
  const top = await readTop(session, limit, Date.now());
  output.result(top, topLines(top, Date.parse(top.at), output.wide));
}

async function readTop(session: Session, limit: number, now: number): Promise<Top> {
  const since = new Date(now - LOOK_BACK_MS).toISOString();
  const query = `WorkflowType IN (${quoteLiteral(RUNNER_WORKFLOW)}, ${quoteLiteral(JOB_WORKFLOW)}) AND ${FAILED_OR_ERRORED} AND CloseTime > ${quoteLiteral(since)}`;
  const [sets, runners, jobs, count] = await Promise.all([
    readSets(session, {}, limit),
    selectRunners(session, {}, limit),
    selectJobs(session, {}, limit),
    session.call(async (client) => (await client.workflow.count(query)).count),
  ]);
  return {
    at: new Date(now).toISOString(),
    sets: sets.rows,
    runners: runners.rows,
    jobs: jobs.rows,
    more: sets.more || runners.more || jobs.more,
    endedBadly: { since, count, ...omitUndefined({ ui: session.listLink(query) }) },
  };
}

/**
 * Formats the snapshot as text.
 * @param now - current time (ms since the epoch)
 */
export function topLines(
  { at, sets, runners, jobs, more, endedBadly: { count, ui } }: Top,
  now: number,
  wide = false,
): string[] {
  const phases = RUNNER_PHASES.map((phase) => ({
    phase,
    number: runners.filter((runner) => runner.phase === phase).length,
  })).filter(({ number }) => number > 0);
  return [
    `${at}  runners: ${runners.length}${phases.length === 0 ? '' : ` (${phases.map(({ phase, number }) => `${number} ${phase}`).join(', ')})`}, sets: ${sets.length}, jobs: ${jobs.length}${more ? '; there are more: --limit' : ''}`,
    `${count} failed or errored within an hour${count === 0 || ui === undefined ? '' : `: ${ui}`}`,
    ...(sets.length === 0 ? [] : ['', 'SETS', setTable(sets, now, wide)]),
    ...(jobs.length === 0 ? [] : ['', 'JOBS', jobTable(jobs, now, wide)]),
    ...(runners.length === 0 ? [] : ['', 'RUNNERS', runnerTable(runners, now, wide)]),
  ];
}
