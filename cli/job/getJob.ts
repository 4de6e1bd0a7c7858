/** `holdfast job get`: a job as a tree. */
import {
  JOB_STAGES,
  type RunnerPhase,
  type RunnerStatus,
  type StepStatus,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { queryStatus, toRow, type RunnerRow } from '../shared/runnerRow.ts';
import {
  pauseInfo,
  pauseNote,
  pauseText,
  type PauseInfo,
} from '../../worker/temporal/pauseInfo.ts';
import { pendingActivities, type PendingActivity } from '../shared/pendingActivities.ts';
import type { Session } from '../shared/session.ts';
import {
  createPollerCheck,
  unpolledLines,
  unpolledQueues,
  type UnpolledQueue,
} from '../shared/unpolledQueues.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import { table } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';
import { describeJob, NO_WORKER, readJob, type JobSnapshot } from './jobClient.ts';

/** Everything known about one job. */
export interface JobDetails extends RunnerRow, JobSnapshot {
  /** Reason why the running step waits. Absent if no step runs, or no worker answers. */
  readonly step?: Pick<RunnerStatus, 'waitingFor' | 'waitingUntil'>;
  /** Pause of its workflow in Temporal. */
  readonly paused?: PauseInfo;
  /** Why `job` is absent. */
  readonly note?: string;
  readonly pendingActivities: readonly PendingActivity[];
  /** Task queues with waiting tasks that no worker polls. */
  readonly unpolledQueues: readonly UnpolledQueue[];
  readonly ui?: string;
}

/** @returns whether it has ended */
export async function getJob(session: Session, output: Output, id: string): Promise<boolean> {
  const description = await describeJob(session, id);
  const { workflowId, runId } = description;
  const pending = await pendingActivities(description.raw, session.converter);
  const ui = session.link(workflowId, runId);
  const seen = await readJob(session, description);
  const running =
    seen.end === undefined ? seen.job?.steps.find(({ state }) => state === 'running') : undefined;
  const step = running && (await stepWaits(session, running));
  const paused = pauseInfo(description);
  const details: JobDetails = {
    ...toRow(description),
    ...seen,
    ...(seen.job === undefined && seen.end === undefined
      ? { note: missingJobNote(paused, workflowId) }
      : {}),
    pendingActivities: pending,
    unpolledQueues: await unpolledQueues(createPollerCheck(session), description, pending),
    ...omitUndefined({ step, ui, paused }),
  };
  output.result(details, jobLines(details, Date.now()));
  return seen.end !== undefined;
}

const missingJobNote = (paused: PauseInfo | undefined, workflowId: string): string =>
  paused === undefined ? NO_WORKER : pauseNote(workflowId);

const ON_ITS_WAY_OUT: readonly RunnerPhase[] = ['Draining', 'Unregistering', 'TearingDown', 'Gone'];

async function stepWaits(
  session: Session,
  { workflowId }: StepStatus,
): Promise<JobDetails['step']> {
  const status = await statusIfReachable<RunnerStatus>(session, workflowId);
  // A step has no registration: what a runner waits for then says nothing here.
  if (status !== undefined && ON_ITS_WAY_OUT.includes(status.phase))
    return { waitingFor: 'its pod to be gone' };
  return (
    status && omitUndefined({ waitingFor: status.waitingFor, waitingUntil: status.waitingUntil })
  );
}

/**
 * Returns the status, if available. A job that is starting or ending may not answer, and an old one
 * is deleted.
 */
async function statusIfReachable<T>(session: Session, workflowId: string): Promise<T | undefined> {
  try {
    return await queryStatus<T>(session, workflowId);
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** @param now - ms since the epoch */
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
  const rows: [string, string | undefined][] = [
    ['Id', id],
    ['Job', name],
    ['Scope', scope],
    ['Status', status.toLowerCase()],
    ['Paused', paused && pauseText(paused)],
    ['Outcome', end && [end.outcome, end.cause].filter(Boolean).join('/')],
    ['Message', end?.message],
    [
      'Waits for',
      job?.waitingFor &&
        [job.waitingFor, job.waitingUntil && `until ${job.waitingUntil}`]
          .filter(Boolean)
          .join(', '),
    ],
    ['Cancel', job?.cancel && `${job.cancel.mode}: ${job.cancel.reason}`],
    ...(job?.warnings ?? []).map((warning): [string, string] => ['Warning', warning]),
    ['Started', `${startedAt} (${formatAge(now - Date.parse(startedAt))} ago)`],
    ['Ended', endedAt],
    ['Link', ui],
    ['Note', note],
  ];
  const lines = rows
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([field, value]) => `${`${field}:`.padEnd(18)}${value}`);
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
    waits ? waitsText(waiting) || '-' : endReason,
  ];
}

function waitsText({
  waitingFor,
  waitingUntil,
}: Pick<RunnerStatus, 'waitingFor' | 'waitingUntil'>): string {
  return waitingFor === undefined
    ? ''
    : `waits for ${waitingFor}${waitingUntil === undefined ? '' : `, until ${waitingUntil}`}`;
}
