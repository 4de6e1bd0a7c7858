/** `holdfast runner get` */
import type { RunnerStatus } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import { CliError } from '../shared/exit.ts';
import { getResult, type RunnerEnd } from '../shared/followRunner.ts';
import type { Output } from '../shared/output.ts';
import { withTerminationDetails } from '../shared/terminationDetails.ts';
import {
  pauseInfo,
  pauseNote,
  pauseText,
  type PauseInfo,
} from '../../worker/temporal/pauseInfo.ts';
import { pendingActivities, type PendingActivity } from '../shared/pendingActivities.ts';
import { queryStatus, toRow, type RunnerRow } from '../shared/runnerRow.ts';
import type { Session } from '../shared/session.ts';
import { readRerun, rerunText, type RerunDetails } from './rerunDetails.ts';
import { findRunner } from './startRunner.ts';
import { table } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';
import {
  createPollerCheck,
  unpolledLines,
  unpolledQueues,
  type UnpolledQueue,
} from '../shared/unpolledQueues.ts';

/** Everything known about one runner. */
export interface RunnerDetails extends RunnerRow {
  /** From the workflow itself; absent when no worker answered in time, or when the runner has ended. */
  readonly runner?: RunnerStatus;
  /** Pause of its workflow in Temporal. */
  readonly paused?: PauseInfo;
  /** Why `runner` is absent, or what that means. */
  readonly note?: string;
  readonly end?: RunnerEnd;
  /** Rerun of the job that was lost with the runner, if there is one. */
  readonly rerun?: RerunDetails;
  readonly pendingActivities: readonly PendingActivity[];
  /** Task queues with waiting tasks that no worker polls. */
  readonly unpolledQueues: readonly UnpolledQueue[];
  readonly ui?: string;
}

const LEFT_BEHIND =
  'it did not clean up; the sweep removes the objects that it left behind ("holdfast sweep")';

/** @returns whether it has ended */
export async function getRunner(session: Session, output: Output, id: string): Promise<boolean> {
  const details = await readRunner(session, id);
  output.result(details, detailLines(details, Date.now()));
  return !isOpen({ name: details.status });
}

/** @throws CliError `not_found`, `unreachable` */
async function readRunner(session: Session, id: string): Promise<RunnerDetails> {
  const { workflowId } = await findRunner(session, id);
  const description = await session.call(
    (client) => client.workflow.getHandle(workflowId).describe(),
    { workflowId },
  );
  if (description.type !== 'runner')
    throw new CliError(
      'not_found',
      `${workflowId} is not a runner but a workflow of type ${description.type}`,
    );
  const row = toRow(description);
  const ui = session.link(workflowId, row.runId);
  const pending = await pendingActivities(description.raw, session.converter);
  const base = {
    ...row,
    pendingActivities: pending,
    unpolledQueues: await unpolledQueues(createPollerCheck(session), description, pending),
    ...omitUndefined({ ui }),
  };
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
  const paused = pauseInfo(description);
  if (paused !== undefined) return { ...base, paused, note: pauseNote(workflowId) };
  const runner = await queryStatus(session, workflowId);
  if (runner === undefined)
    return {
      ...base,
      note: 'no worker answered within 3 s; this is what Temporal knows without it. Check that a worker runs ("holdfast worker")',
    };
  return { ...base, runner, phase: runner.phase };
}

/** @param now - ms since the epoch */
function detailLines(details: RunnerDetails, now: number): string[] {
  const { runner, end } = details;
  const age = (iso: string): string => `${iso} (${formatAge(now - Date.parse(iso))} ago)`;
  const rows: [string, string | undefined][] = [
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
    [
      'Waits for',
      runner?.waitingFor &&
        [runner.waitingFor, runner.waitingUntil && `until ${runner.waitingUntil}`]
          .filter(Boolean)
          .join(', '),
    ],
    ['Cancel', runner?.cancel && `${runner.cancel.mode}: ${runner.cancel.reason}`],
    [
      'Unregister tries',
      runner && runner.unregisterAttempts > 0 ? String(runner.unregisterAttempts) : undefined,
    ],
    ['Started', age(details.startedAt)],
    ['Ended', details.endedAt && age(details.endedAt)],
    ['Link', details.ui],
  ];
  const lines = rows
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `${`${name}:`.padEnd(18)}${value}`);
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
