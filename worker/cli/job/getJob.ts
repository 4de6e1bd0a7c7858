/** `holdfast job get`: a job as a tree, and `holdfast job list`. */
import { JOB_STAGES, JOB_WORKFLOW, type StepStatus } from '../../../core/contract/index.ts';
import { defined } from '../../../core/defined.ts';
import { quoted } from '../../../core/domain/visibility.ts';
import { outcomeOf } from '../runner/listRunners.ts';
import { toRow, type RunnerRow } from '../runner/runnerState.ts';
import { pendingActivities, type PendingActivity } from '../temporal/pendingActivities.ts';
import type { Session } from '../temporal/session.ts';
import { pollCheck, unpolledLines, unpolledQueues, type UnpolledQueue } from '../temporal/unpolledQueues.ts';
import type { Output } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';
import { formatAge } from '../terminal/text.ts';
import { describeJob, NO_WORKER, seeJob, type JobSeen } from './jobClient.ts';

/** Everything known about one job. */
export interface JobDetails extends RunnerRow, JobSeen {
  /** Why `job` is absent. */
  readonly note?: string;
  readonly pendingActivities: readonly PendingActivity[];
  /** What it waits on that no worker takes up. */
  readonly unpolled: readonly UnpolledQueue[];
  readonly ui?: string;
}

export async function getJob(session: Session, output: Output, id: string): Promise<void> {
  const description = await describeJob(session, id);
  const { workflowId, runId } = description;
  const pending = await pendingActivities(description.raw, session.converter);
  const ui = session.link(workflowId, runId);
  const seen = await seeJob(session, description);
  const details: JobDetails = { ...toRow(description), ...seen, ...(seen.job === undefined && seen.end === undefined ? { note: NO_WORKER } : {}), pendingActivities: pending, unpolled: await unpolledQueues(pollCheck(session), description, pending), ...defined({ ui }) };
  output.result(details, jobLines(details, Date.now()));
}

/** @param now - ms since the epoch */
export function jobLines({ id, name, scope, status, startedAt, endedAt, job, end, note, unpolled, ui }: JobDetails, now: number): string[] {
  const rows: [string, string | undefined][] = [
    ['Id', id],
    ['Job', name],
    ['Scope', scope],
    ['Status', status.toLowerCase()],
    ['Outcome', end && [end.outcome, end.cause].filter(Boolean).join('/')],
    ['Message', end?.message],
    ['Waits for', job?.waitsFor && [job.waitsFor, job.waitsUntil && `until ${job.waitsUntil}`].filter(Boolean).join(', ')],
    ['Cancel', job?.cancel && `${job.cancel.mode}: ${job.cancel.reason}`],
    ['Started', `${startedAt} (${formatAge(now - Date.parse(startedAt))} ago)`],
    ['Ended', endedAt],
    ['Link', ui],
    ['Note', note],
  ];
  const lines = rows.filter(([, value]) => value !== undefined && value !== '').map(([field, value]) => `${`${field}:`.padEnd(18)}${value}`);
  return [...lines, ...unpolledLines(unpolled), ...stageLines(job?.steps ?? [], now)];
}

/** A heading for each stage, and under it its steps. */
function stageLines(steps: readonly StepStatus[], now: number): string[] {
  return JOB_STAGES.flatMap((stage) => {
    const own = steps.filter((step) => step.stage === stage);
    if (own.length === 0) return [];
    const rows = own.map((step) => [step.name, [step.outcome ?? step.state, step.cause].filter(Boolean).join('/'), tookText(step, now), step.pod ?? '-', step.outcome === 'succeeded' ? '-' : (step.message ?? '-')]);
    return ['', stage, ...table(['STEP', 'STATE', 'TOOK', 'POD', 'WHY'], rows).split('\n').map((line) => `  ${line}`)];
  });
}

function tookText({ startedAt, endedAt }: StepStatus, now: number): string {
  return startedAt === undefined ? '-' : formatAge((endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt));
}

/** Which jobs are listed. */
export interface JobSelection {
  readonly name?: string;
  readonly scope?: string;
  /** Ended jobs too. */
  readonly all?: boolean;
}

/** Newest first. */
export async function listJobs(session: Session, output: Output, { name, scope, all = false }: JobSelection, limit: number): Promise<void> {
  const terms = [`WorkflowType = ${quoted(JOB_WORKFLOW)}`, ...(all ? [] : ["ExecutionStatus = 'Running'"]), ...(name === undefined ? [] : [`RunnerName = ${quoted(name)}`]), ...(scope === undefined ? [] : [`RunnerScope = ${quoted(scope)}`])];
  const found = await session.call(async (client) => {
    const rows: RunnerRow[] = [];
    for await (const info of client.workflow.list({ query: terms.join(' AND '), pageSize: Math.min(limit + 1, 1_000) })) if (rows.push(toRow(info)) > limit) break;
    return rows;
  }, { timeoutMs: 60_000 });
  const rows = found.slice(0, limit);
  const more = found.length > limit;
  const now = Date.now();
  output.result({ jobs: rows, more }, rows.length === 0 ? [] : [table(['ID', 'JOB', 'STAGE', 'SCOPE', 'AGE', 'OUTCOME'], rows.map((row) => [row.id, row.name ?? '-', row.phase ?? '-', row.scope ?? '-', formatAge(now - Date.parse(row.startedAt)), outcomeOf(row)]))]);
  if (output.json) return;
  if (rows.length === 0) output.note('none', all ? 'no jobs' : 'no jobs (ended ones: --all)');
  if (more) output.note('more', `only the newest ${limit} are shown: --limit shows more`);
}
