/** What a job is run for again and again, a newer version each time: a pull request, or a branch that is pushed to. Pure. */
import type { JobTrigger } from '../contract/jobInput.ts';

/** The pull request or branch whose versions a job is run for. */
export interface ChangeSet {
  /** Name of the job. */
  readonly job: string;
  /** `owner/repo`. */
  readonly repository: string;
  /** The branch that it is, or will be, part of. */
  readonly base: string;
  /** Number of the pull request; absent: pushes to `base`. */
  readonly pullRequest?: number;
}

/**
 * Id of the workflow through which all its runs go; the commit has no part in it. Neither a job's name nor a branch's can have a colon:
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

/** Parses the id of a `jobGroup` workflow. Returns undefined if {@link jobGroupId} cannot have made it. */
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

/** Parses `owner/repo#7` (a pull request) or `owner/repo@main` (the pushes to a branch). Returns undefined if the text is neither. */
export function parseChangeSetSelector(text: string): ChangeSetSelector | undefined {
  const [, repository, number, branch] =
    /^([\w.-]+\/[\w.-]+)(?:#([1-9]\d{0,9})|@([^\s:]+))$/.exec(text) ?? [];
  if (repository === undefined) return undefined;
  if (number !== undefined) return { repository, pullRequest: Number(number) };
  return branch === undefined ? undefined : { repository, branch };
}

const isSameRepository = (one: string, other: string): boolean =>
  one.toLowerCase() === other.toLowerCase();

/** Whether the runs of a change set are selected. */
export function selectsChangeSet(selector: ChangeSetSelector, changeSet: ChangeSet): boolean {
  if (!isSameRepository(selector.repository, changeSet.repository)) return false;
  return 'pullRequest' in selector
    ? changeSet.pullRequest === selector.pullRequest
    : changeSet.pullRequest === undefined && changeSet.base === selector.branch;
}

/**
 * Whether a job is selected that was started for a change set on its own, without a group.
 * @param source - the job's trigger, as its input says
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
