/** What a job is run for again and again, a newer version each time: a pull request, or a branch that is pushed to. Pure. */

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
