/** Implements `holdfast job get`, which shows a job as a tree. */
import {
  JOB_STAGES,
  type RunnerPhase,
  type RunnerStatus,
  type StepStatus,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { queryStatus, toRow, type RunnerRow } from '../shared/runnerRow.ts';
import { pauseNote, pauseText } from '../../worker/temporal/pauseInfo.ts';
import { describeResource } from '../shared/resource.ts';
import { JOB } from '../shared/resourceKind.ts';
import type { Session } from '../shared/session.ts';
import { unpolledLines } from '../shared/unpolledQueues.ts';
import {
  fieldLines,
  NO_WORKER_NOTE,
  waitText,
  workflowDetails,
  type WorkflowDetails,
} from '../shared/workflowDetails.ts';
import { CliError } from '../shared/exit.ts';
import type { IdResult } from '../shared/forEachId.ts';
import { table } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';
import { readJob, type JobSnapshot } from './jobClient.ts';

/** Facts about one job. */
export interface JobDetails extends RunnerRow, JobSnapshot, WorkflowDetails {
  /** Reason why the running step waits. Absent if no step runs, or no worker answers. */
  readonly step?: Pick<RunnerStatus, 'waitingFor' | 'waitingUntil'>;
  /** Reason why `job` is absent. */
  readonly note?: string;
}

/**
 * Reads a job, for `holdfast job get`.
 * @returns the job, and whether it has ended
 * @throws CliError `not_found`, `unreachable`
 */
export async function getJob(
  session: Session,
  id: string,
): Promise<IdResult & { readonly ended: boolean }> {
  const description = await describeResource(session, JOB, id);
  const base = await workflowDetails(session, description);
  const seen = await readJob(session, description);
  const running =
    seen.end === undefined ? seen.job?.steps.find(({ state }) => state === 'running') : undefined;
  const step = running && (await stepWaits(session, running));
  const missingJobNote =
    base.paused === undefined ? NO_WORKER_NOTE : pauseNote(description.workflowId);
  const details: JobDetails = {
    ...toRow(description),
    ...seen,
    ...base,
    ...(seen.job === undefined && seen.end === undefined ? { note: missingJobNote } : {}),
    ...omitUndefined({ step }),
  };
  return {
    document: details,
    lines: jobLines(details, Date.now()),
    ended: seen.end !== undefined,
  };
}

const ENDING_PHASES: readonly RunnerPhase[] = ['Draining', 'Unregistering', 'TearingDown', 'Gone'];

async function stepWaits(
  session: Session,
  { workflowId }: StepStatus,
): Promise<JobDetails['step']> {
  const status = await statusIfReachable<RunnerStatus>(session, workflowId);
  // A step has no registration. A step that is ending therefore only waits for its pod.
  if (status !== undefined && ENDING_PHASES.includes(status.phase))
    return { waitingFor: 'its pod to be gone' };
  return (
    status && omitUndefined({ waitingFor: status.waitingFor, waitingUntil: status.waitingUntil })
  );
}

/**
 * Returns the status of a workflow. Returns `undefined` if no worker answers, or if the workflow
 * does not exist yet or any more.
 */
async function statusIfReachable<T>(session: Session, workflowId: string): Promise<T | undefined> {
  try {
    return await queryStatus<T>(session, workflowId);
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/**
 * Formats a job for people.
 * @param now - current time (ms since the epoch)
 */
export function jobLines(
  {
    id,
    name,
    scope,
    status,
    paused,
    startedAt,
    endedAt,
    job,
    step,
    end,
    note,
    unpolledQueues,
    ui,
  }: JobDetails,
  now: number,
): string[] {
  const lines = fieldLines([
    ['Id', id],
    ['Job', name],
    ['Scope', scope],
    ['Status', status.toLowerCase()],
    ['Paused', paused && pauseText(paused)],
    ['Outcome', end && [end.outcome, end.cause].filter(Boolean).join('/')],
    ['Message', end?.message],
    ['Waits for', job?.waitingFor && waitText(job)],
    ['Cancel', job?.cancel && `${job.cancel.mode}: ${job.cancel.reason}`],
    ...(job?.warnings ?? []).map((warning): [string, string] => ['Warning', warning]),
    ['Started', `${startedAt} (${formatAge(now - Date.parse(startedAt))} ago)`],
    ['Ended', endedAt],
    ['Link', ui],
    ['Note', note],
  ]);
  return [...lines, ...unpolledLines(unpolledQueues), ...stageLines(job?.steps ?? [], step, now)];
}

/** Lists the stages, each with its steps. A running step shows what it waits for. */
function stageLines(
  steps: readonly StepStatus[],
  waiting: JobDetails['step'],
  now: number,
): string[] {
  if (steps.length === 0) return [];
  const rows = JOB_STAGES.flatMap((stage) => {
    const own = steps.filter((step) => step.stage === stage);
    return own.length === 0
      ? []
      : [
          [stage],
          ...own.map((step, index) => [
            `${index === own.length - 1 ? '└─' : '├─'} ${step.name}`,
            ...stepCells(step, waiting, now),
          ]),
        ];
  });
  return ['', ...table(['STEP', 'STATE', 'STARTED', 'TOOK', 'POD', 'WHY'], rows).split('\n')];
}

function stepCells(step: StepStatus, waiting: JobDetails['step'], now: number): string[] {
  const { state, outcome, cause, startedAt, endedAt, pod = '-', message = '-' } = step;
  const took =
    startedAt === undefined
      ? '-'
      : formatAge((endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt));
  const waits = state === 'running' && waiting !== undefined;
  const endReason = outcome === 'succeeded' ? '-' : message;
  return [
    [outcome ?? state, cause].filter(Boolean).join('/'),
    startedAt?.slice(11, 19) ?? '-',
    took,
    pod,
    waits ? stepWaitText(waiting) : endReason,
  ];
}

function stepWaitText(waiting: NonNullable<JobDetails['step']>): string {
  const text = waitText(waiting);
  return text === undefined ? '-' : `waits for ${text}`;
}
