/** Implements `holdfast set get`. */
import { SetNotAdmittedError } from '../../activities/runnerSet/querySetStatus.ts';
import { parseRoutingMemo } from '../../activities/runnerSet/listRoutingInfo.ts';
import type { RunnerSetStatus } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { runnerVersionText } from '../../core/domain/runnerVersion.ts';
import { queueCheckText } from '../../core/domain/queueCheckText.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import type { IdResult } from '../shared/forEachId.ts';
import { pauseNote, pauseText } from '../../worker/temporal/pauseInfo.ts';
import { describeResource } from '../shared/resource.ts';
import { SET } from '../shared/resourceKind.ts';
import type { Session } from '../shared/session.ts';
import { FAILED_OR_ERRORED, selectionQuery } from '../shared/selection.ts';
import { querySetState, nameOf } from './setClient.ts';
import { getSetEnd, type SetEnd } from './setEnd.ts';
import { table } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';
import { unpolledLines } from '../shared/unpolledQueues.ts';
import {
  fieldLines,
  NO_WORKER_NOTE,
  workflowDetails,
  type WorkflowDetails,
} from '../shared/workflowDetails.ts';

/** Facts about one set. */
export interface SetDetails extends WorkflowDetails {
  readonly id: string;
  readonly name: string;
  readonly runId: string;
  /** Status in Temporal: RUNNING, COMPLETED, … */
  readonly status: string;
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly scope?: string;
  readonly labels?: readonly string[];
  /** Status from the workflow. Absent if no worker answered in time, or if the set has ended. */
  readonly set?: RunnerSetStatus;
  /** Reason why `set` is absent. */
  readonly note?: string;
  readonly end?: SetEnd;
  /** Address of the page that lists the failed runners of the set. */
  readonly failedRunnersUrl?: string;
}

/**
 * Reads a set, for `holdfast set get`.
 * @returns the set, and whether it has ended
 * @throws CliError `not_found`, `unreachable`
 */
export async function getSet(
  session: Session,
  name: string,
): Promise<IdResult & { readonly ended: boolean }> {
  const details = await readSet(session, name);
  return {
    document: details,
    lines: setLines(details, Date.now()),
    ended: !isOpen({ name: details.status }),
  };
}

async function readSet(session: Session, nameOrId: string): Promise<SetDetails> {
  const description = await describeResource(session, SET, nameOrId);
  const { workflowId, runId, status, startTime, closeTime, memo } = description;
  const { labels, scope } = parseRoutingMemo(memo) ?? {};
  const base = {
    id: workflowId,
    name: nameOf(workflowId),
    runId,
    status: status.name,
    startedAt: startTime.toISOString(),
    ...(closeTime === undefined ? {} : { endedAt: closeTime.toISOString() }),
    ...(await workflowDetails(session, description)),
    ...omitUndefined({
      labels,
      scope,
      failedRunnersUrl: session.listLink(
        `${selectionQuery({ set: nameOf(workflowId), all: true })} AND ${FAILED_OR_ERRORED}`,
      ),
    }),
  };
  if (!isOpen(status)) {
    const end = await getSetEnd(session, workflowId, runId);
    return { ...base, ...omitUndefined({ end }) };
  }
  if (base.paused !== undefined) return { ...base, note: pauseNote(workflowId) };
  const set = await querySetState(session, workflowId);
  if (set instanceof SetNotAdmittedError) return { ...base, note: set.message };
  if (set === undefined) return { ...base, note: NO_WORKER_NOTE };
  return { ...base, set };
}

/**
 * Formats a set for people.
 * @param now - current time (ms since the epoch)
 */
export function setLines(details: SetDetails, now: number): string[] {
  const { set, end } = details;
  const age = (iso: string): string => `${iso} (${formatAge(now - Date.parse(iso))} ago)`;
  const lines = fieldLines([
    ['Set', details.name],
    ['Id', details.id],
    ['Status', details.status.toLowerCase()],
    ['Paused', details.paused && pauseText(details.paused)],
    ['End', end && `${end.outcome}: ${end.message}`],
    ['Scope', details.scope],
    ['Labels', details.labels?.join(', ')],
    ['Template', set?.templateHash],
    ['Runner version', set?.runnerVersion && runnerVersionText(set.runnerVersion)],
    ['Wanted', set && `${set.desired} (${boundsText(set)})`],
    ['Capacity', set?.clusterLimit && clusterLimitText(set)],
    ['Runners', set && countsText(set.runnerCounts)],
    [
      'Jobs',
      set &&
        `${set.jobs.queued} queued, ${set.jobs.running} running; ${set.jobs.startedTotal} started and ${set.jobs.completedTotal} completed in all`,
    ],
    ['Starts no runner', set?.blockedReason],
    ['Last failure', set?.lastFailure && `${set.lastFailure.runner}: ${set.lastFailure.message}`],
    ['Waits for', set?.waitingFor],
    ['List awaited', set?.listPendingSince && age(set.listPendingSince)],
    ['Queue check', queueCheckText(set?.queueCheck)],
    ['Holds', set?.holds.join(', ')],
    ['Started', age(details.startedAt)],
    ['Ended', details.endedAt && age(details.endedAt)],
    ['Link', details.ui],
    ['Ended badly', details.failedRunnersUrl],
    ['Note', details.note],
  ]);
  lines.push(...unpolledLines(details.unpolledQueues));
  if (set !== undefined && set.runners.length > 0) lines.push('', runnersTable(set, now));
  lines.push(...activityLines(details));
  return lines;
}

function clusterLimitText({ clusterLimit, max }: RunnerSetStatus): string | undefined {
  if (clusterLimit === undefined) return undefined;
  const { limit, reason, since } = clusterLimit;
  return `${limit} of ${max}: ${reason} since ${since}`;
}

function countsText({ starting, idle, busy, draining }: RunnerSetStatus['runnerCounts']): string {
  const count = starting + idle + busy + draining;
  return `${count}: ${starting} starting, ${idle} idle, ${busy} busy, ${draining} draining`;
}

function activityLines({ pendingActivities: pending }: SetDetails): string[] {
  if (pending.length === 0) return [];
  const failure = (message: string | undefined): string =>
    message === undefined ? '' : `, last failure: ${message}`;
  return [
    '',
    ...pending.map(
      ({ type, state, attempt, lastFailure }) =>
        `${type}: ${state}, attempt ${attempt}${failure(lastFailure)}`,
    ),
  ];
}

/** Returns the limits as text: `3 to 20`, or `fixed`. */
export function boundsText({
  min,
  max,
  replicas,
  replaceAhead,
}: Pick<RunnerSetStatus, 'min' | 'max' | 'replicas' | 'replaceAhead'>): string {
  return `${replicas === undefined ? `at least ${min} idle, at most ${max}` : `fixed at ${replicas}`}${replaceAhead === undefined ? '' : `, ${replaceAhead} started ahead`}`;
}

function runnersTable({ runners, templateHash }: RunnerSetStatus, now: number): string {
  return table(
    ['RUNNER', 'STATE', 'TEMPLATE', 'AGE', 'HELD', 'SLOT', 'NAME'],
    runners.map((runner) => [
      runner.workflowId,
      runner.drainRequested === undefined
        ? runner.state
        : `${runner.state}, drain requested x${runner.drainRequested.times}`,
      runner.templateHash === templateHash ? runner.templateHash : `${runner.templateHash} (old)`,
      formatAge(now - Date.parse(runner.startedAt)),
      runner.onHold ? 'held' : '-',
      runner.slot === undefined ? '-' : String(runner.slot),
      runner.runnerName ?? '-',
    ]),
  );
}
