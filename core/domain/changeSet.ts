/** What a job is run for again and again, a newer version each time: a pull request, or a branch that is pushed to. Pure. */

export interface ChangeSet {
  /** Name of the declared job. */
  readonly job: string;
  /** `owner/repo`. */
  readonly repository: string;
  /** The branch that it is, or will be, part of. */
  readonly base: string;
  /** Number of the pull request; absent: pushes to `base`. */
  readonly pullRequest?: number;
}

/** Id of the same for the times of a declared job's schedule. */
export function scheduleGroupId({
  job,
  repository,
}: Pick<ChangeSet, 'job' | 'repository'>): string {
  return ['job-group', job, repository.toLowerCase(), 'schedule'].join(':');
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

/**
 * Under which name the runs of a group are reported. Of a commit that is pushed to a branch and is part of a pull request, too, both are seen. An id of
 * somebody's own making is taken for a pull request's.
 * @param job - its name
 */
export function reportName(group: string, job: string): string {
  return group.endsWith(':push') ? `${job} (push)` : job;
}
