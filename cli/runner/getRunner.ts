/** Implements `holdfast runner get`. */
import type { RunnerStatus } from '../../core/contract/index.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import { getResult, type RunnerEnd } from '../shared/followRunner.ts';
import type { IdResult } from '../shared/forEachId.ts';
import { withTerminationDetails } from '../shared/terminationDetails.ts';
import { pauseNote, pauseText } from '../../worker/temporal/pauseInfo.ts';
import type { PendingActivity } from '../shared/pendingActivities.ts';
import { describeResource } from '../shared/resource.ts';
import { RUNNER } from '../shared/resourceKind.ts';
import { queryStatus, toRow, type RunnerRow } from '../shared/runnerRow.ts';
import type { Session } from '../shared/session.ts';
import { readRerun, rerunText, type RerunDetails } from './rerunDetails.ts';
import { table } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';
import { unpolledLines } from '../shared/unpolledQueues.ts';
import {
  fieldLines,
  NO_WORKER_NOTE,
  waitText,
  workflowDetails,
  type WorkflowDetails,
} from '../shared/workflowDetails.ts';

/** Facts about one runner. */
export interface RunnerDetails extends RunnerRow, WorkflowDetails {
  /** Status from the workflow. Absent if no worker answered in time, or if the runner has ended. */
  readonly runner?: RunnerStatus;
  /** Reason why `runner` is absent, or a note about it. */
  readonly note?: string;
  readonly end?: RunnerEnd;
  /** Rerun of the job that was lost with the runner, if there is one. */
  readonly rerun?: RerunDetails;
}

const LEFT_BEHIND =
  'it did not clean up; the sweep removes the objects that it left behind ("holdfast sweep")';

/**
 * Reads a runner, for `holdfast runner get`.
 * @returns the runner, and whether it has ended
 * @throws CliError `not_found`, `unreachable`
 */
export async function getRunner(
  session: Session,
  id: string,
): Promise<IdResult & { readonly ended: boolean }> {
  const details = await readRunner(session, id);
  return {
    document: details,
    lines: detailLines(details, Date.now()),
    ended: !isOpen({ name: details.status }),
  };
}

async function readRunner(session: Session, id: string): Promise<RunnerDetails> {
  const description = await describeResource(session, RUNNER, id);
  const { workflowId } = description;
  const row = toRow(description);
  const base = { ...row, ...(await workflowDetails(session, description)) };
  const [ended] = await withTerminationDetails(session, [row]);
  const end = ended?.end;
  if (end !== undefined)
    return {
      ...base,
      end,
      ...(end.outcome !== 'failed' && end.sweep === undefined ? { note: LEFT_BEHIND } : {}),
    };
  if (!isOpen(description.status)) {
    const result = await getResult(session, workflowId, row.runId);
    const { rerunWorkflowId } = result;
    const rerun = rerunWorkflowId && (await readRerun(session, rerunWorkflowId));
    return { ...base, end: result, ...(rerun ? { rerun } : {}) };
  }
  if (base.paused !== undefined) return { ...base, note: pauseNote(workflowId) };
  const runner = await queryStatus(session, workflowId);
  if (runner === undefined) return { ...base, note: NO_WORKER_NOTE };
  return { ...base, runner, phase: runner.phase };
}

/**
 * Formats a runner for people.
 * @param now - current time (ms since the epoch)
 */
function detailLines(details: RunnerDetails, now: number): string[] {
  const { runner, end } = details;
  const age = (iso: string): string => `${iso} (${formatAge(now - Date.parse(iso))} ago)`;
  const lines = fieldLines([
    ['Id', details.id],
    ['Status', details.status.toLowerCase()],
    ['Paused', details.paused && pauseText(details.paused)],
    ['Phase', details.phase],
    ['Outcome', end?.outcome && [end.outcome, end.cause].filter(Boolean).join('/')],
    ['Message', end?.message],
    ['Job rerun', details.rerun && rerunText(details.rerun)],
    ['Swept', end?.sweep],
    ['Scope', details.scope],
    ['Set', details.set],
    ['Runner', runnerName(runner?.runnerName ?? details.name, runner?.runnerId)],
    [
      'Pod',
      runner?.pod && [runner.pod, runner.node && `on ${runner.node}`].filter(Boolean).join(' '),
    ],
    ['Job', runner?.job],
    ['Attempt', runner && String(runner.attempt)],
    ['Waits for', runner && waitText(runner)],
    ['Cancel', runner?.cancel && `${runner.cancel.mode}: ${runner.cancel.reason}`],
    [
      'Unregister tries',
      runner && runner.unregisterAttempts > 0 ? String(runner.unregisterAttempts) : undefined,
    ],
    ['Started', age(details.startedAt)],
    ['Ended', details.endedAt && age(details.endedAt)],
    ['Link', details.ui],
  ]);
  for (const each of runner?.replacements ?? [])
    lines.push(
      `Replaced:         ${each.runnerName} (${each.cause}) by ${each.replacedBy}${each.rerunWorkflowId === undefined ? '' : `, job rerun by ${each.rerunWorkflowId}`}`,
    );
  lines.push(...unpolledLines(details.unpolledQueues));
  if (details.note !== undefined) lines.push(`Note:             ${details.note}`);
  if (details.pendingActivities.length > 0)
    lines.push('', activityTable(details.pendingActivities, now));
  return lines;
}

function runnerName(name: string | undefined, id: string | undefined): string | undefined {
  return name === undefined || id === undefined ? name : `${name} (id ${id})`;
}

function activityTable(activities: readonly PendingActivity[], now: number): string {
  const retryIn = (iso: string | undefined): string =>
    iso === undefined ? '-' : `in ${formatAge(Date.parse(iso) - now)}`;
  return table(
    ['ACTIVITY', 'STATE', 'ATTEMPT', 'NEXT RETRY', 'LAST FAILURE'],
    activities.map((each) => [
      each.type,
      each.state,
      String(each.attempt),
      retryIn(each.nextRetryAt),
      each.lastFailure ?? '-',
    ]),
  );
}
