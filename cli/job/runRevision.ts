/**
 * Implements `holdfast job run --commit`, which passes a version to the group of its change set
 * (workflow `jobGroup`).
 */
import {
  JOB_GROUP_WORKFLOW,
  jobRevisionSignal,
  type JobGroupStatus,
  type JobRevision,
} from '../../core/contract/index.ts';
import { jobGroupId } from '../../core/domain/changeSet.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { queryStatus } from '../shared/runnerRow.ts';
import type { Session } from '../shared/session.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import { jobError, NO_WORKER } from './jobClient.ts';
import type { JobPlan } from './startJob.ts';

/** Options that identify a version. */
export interface RevisionFlags {
  readonly commit: string;
  /** Branch that the version was pushed to. */
  readonly base?: string;
  /** Number of the pull request. */
  readonly pullRequest?: string;
  /** Whether to run a commit that has run before. @default false */
  readonly rerun?: boolean;
}

/** Version, and the workflow that receives it. */
export interface RevisionPlan {
  readonly workflowId: string;
  readonly version: JobRevision;
}

/**
 * Returns the version to run.
 * @param at - creation time of the version (ISO 8601)
 * @throws CliError `usage`
 */
export function planRevision(
  { input, spec }: JobPlan,
  { commit, base, pullRequest, rerun = false }: RevisionFlags,
  at: string,
): RevisionPlan {
  const { name, scope } = spec;
  if (scope === undefined)
    throw new CliError(
      'usage',
      '--commit: needs the repository of the job; add "repository: owner/repo" to its file',
    );
  if (base === undefined)
    throw new CliError(
      'usage',
      '--commit: must be used with --base, the branch that the commit is, or will be, part of; add it',
    );
  if (!/^[0-9A-Za-z]{1,64}$/.test(commit))
    throw new CliError(
      'usage',
      `--commit: "${commit}" is not the ID of a commit; it must have at most 64 letters and digits`,
    );
  if (pullRequest !== undefined && !/^[1-9]\d{0,9}$/.test(pullRequest))
    throw new CliError(
      'usage',
      `--pull-request: "${pullRequest}" is not the number of a pull request`,
    );
  const workflowId = jobGroupId({
    job: name,
    repository: scope.name,
    base,
    ...(pullRequest === undefined ? {} : { pullRequest: Number(pullRequest) }),
  });
  return { workflowId, version: { commit, at, job: input, ...(rerun ? { rerun: true } : {}) } };
}

/**
 * Sends the version to the group, and starts the group if it does not run.
 * @throws CliError `unreachable`
 */
export async function runRevision(
  session: Session,
  output: Output,
  { workflowId, version }: RevisionPlan,
): Promise<void> {
  try {
    await session.attempt((client) =>
      client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
        workflowId,
        taskQueue: session.settings.taskQueue,
        args: [],
        signal: jobRevisionSignal,
        signalArgs: [version],
        priority: { fairnessKey: fairnessKey(version.job.repository ?? version.job.name) },
      }),
    );
  } catch (error) {
    throw jobError(error, session, workflowId);
  }
  const status = await queryStatus<JobGroupStatus>(session, workflowId);
  output.result({ id: workflowId, ...omitUndefined({ status }) }, [
    `${workflowId}: ${status === undefined ? NO_WORKER : statusText(version.commit, status)}`,
  ]);
}

/** Describes what happens with this commit. */
function statusText(
  requested: string,
  { runNumber, commit = '', running, queued, outcome }: JobGroupStatus,
): string {
  const newest = `version ${runNumber} (${commit})`;
  const prefix = commit === requested ? '' : `${requested} is not the newest; `;
  if (queued)
    return `${prefix}${newest} waits${running === undefined ? '' : ` for ${running.workflowId} to end`}`;
  if (running !== undefined) return `${prefix}${newest} runs as ${running.workflowId}`;
  return `${prefix}${newest} has been run: ${outcome}`;
}
