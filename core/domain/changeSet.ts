/**
 * Change sets: a pull request, or a branch that is pushed to. A job is run for each version of it.
 * Pure.
 */
import type { JobTrigger } from '../contract/jobInput.ts';

/** The pull request or branch whose versions a job is run for. */
export interface ChangeSet {
  /** Name of the job. */
  readonly job: string;
  /** Repository as `owner/repo`. */
  readonly repository: string;
  /** Target branch of the pull request, or the branch that is pushed to. */
  readonly base: string;
  /** Number of the pull request. Absent for pushes to `base`. */
  readonly pullRequest?: number;
}

/**
 * Returns the ID of the workflow that manages all runs of a job for a change set. The commit is not
 * part of it. Neither a job name nor a branch name can contain a colon:
 * https://git-scm.com/docs/git-check-ref-format
 */
export function jobGroupId({ job, repository, base, pullRequest }: ChangeSet): string {
  return [
    'job-group',
    job,
    repository.toLowerCase(),
    base,
    pullRequest === undefined ? 'push' : `pr-${pullRequest}`,
  ].join(':');
}

/**
 * Parses the ID of a `jobGroup` workflow. Returns `undefined` if {@link jobGroupId} cannot have
 * created it.
 */
export function parseJobGroupId(id: string): ChangeSet | undefined {
  const [prefix, job, repository, base, kind, ...rest] = id.split(':');
  const number = /^pr-([1-9]\d{0,9})$/.exec(kind ?? '')?.[1];
  if (prefix !== 'job-group' || !job || !repository || !base || rest.length > 0) return undefined;
  if (number !== undefined) return { job, repository, base, pullRequest: Number(number) };
  return kind === 'push' ? { job, repository, base } : undefined;
}

/** Selection of one change set with all its jobs: a pull request by its number, or the pushes to a branch. */
export type ChangeSetSelector =
  | { readonly repository: string; readonly pullRequest: number }
  | { readonly repository: string; readonly branch: string };

/**
 * Parses `owner/repo#7` (a pull request) or `owner/repo@main` (the pushes to a branch). Returns
 * `undefined` if the text is neither.
 */
export function parseChangeSetSelector(text: string): ChangeSetSelector | undefined {
  const [, repository, number, branch] =
    /^([\w.-]+\/[\w.-]+)(?:#([1-9]\d{0,9})|@([^\s:]+))$/.exec(text) ?? [];
  if (repository === undefined) return undefined;
  if (number !== undefined) return { repository, pullRequest: Number(number) };
  return branch === undefined ? undefined : { repository, branch };
}

const isSameRepository = (one: string, other: string): boolean =>
  one.toLowerCase() === other.toLowerCase();

/** Returns whether the selector matches the change set. */
export function selectsChangeSet(selector: ChangeSetSelector, changeSet: ChangeSet): boolean {
  if (!isSameRepository(selector.repository, changeSet.repository)) return false;
  return 'pullRequest' in selector
    ? changeSet.pullRequest === selector.pullRequest
    : changeSet.pullRequest === undefined && changeSet.base === selector.branch;
}

/**
 * Returns whether the selector matches a job that was started for a change set without a group.
 * @param source - the trigger in the job's input
 */
export function selectsJob(
  selector: ChangeSetSelector,
  repository: string,
  { event, pullRequest, ref }: Partial<JobTrigger>,
): boolean {
  if (!isSameRepository(selector.repository, repository)) return false;
  if ('pullRequest' in selector) return pullRequest === selector.pullRequest;
  return event === 'push' && ref === `refs/heads/${selector.branch}`;
}
