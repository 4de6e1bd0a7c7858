/** What a change of the repository means to a declared job. Pure. */
import type { ChangeFilter, JobSource, RepositoryChange } from '../../core/contract/index.ts';
import { jobGroupId } from '../../core/domain/changeSet.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { passesFilter } from '../../core/domain/filterPattern.ts';
import { COMMIT, REF } from '../../core/domain/gitNames.ts';
import type { DefinitionSpec } from '../../core/input/jobDefinition.ts';

export type ChangeDecision =
  | { readonly kind: 'run'; readonly group: string; readonly source: JobSource }
  /** First it has to be known which files it changes. */
  | { readonly kind: 'askPaths'; readonly pullRequest: number }
  | { readonly kind: 'leave'; readonly why: string }
  /** Not what the job is started by. */
  | { readonly kind: 'ignore' };

type Spec = Pick<DefinitionSpec, 'name' | 'repository' | 'push' | 'pullRequest' | 'untrusted'>;

/** The first rule that matches decides; docs/jobs.md has them as a table. @param asked - which files it changes was asked, whatever was answered */
export function decideChange(spec: Spec, change: RepositoryChange, asked: boolean): ChangeDecision {
  const { event, branch, pullRequest, paths } = change;
  const filter = event === 'push' ? spec.push : spec.pullRequest;
  if (filter === undefined) return { kind: 'ignore' };
  const untrusted = event === 'pull_request' && change.trusted !== true;
  if (untrusted && !spec.untrusted)
    return { kind: 'leave', why: "it is an outsider's, and the job is not for those (untrusted)" };
  if (filter.branches !== undefined && branch === undefined)
    return { kind: 'leave', why: 'it is a tag, and the job is for branches' };
  if (filter.branches !== undefined && !passesFilter(filter.branches, branch ?? ''))
    return { kind: 'leave', why: `branches: ${branch} does not match` };
  if (mustAsk(filter, change) && pullRequest !== undefined && !asked)
    return { kind: 'askPaths', pullRequest };
  // As GitHub does it, who does not know which files were changed runs; and so does a tag.
  const { paths: wanted } = filter;
  if (
    wanted !== undefined &&
    branch !== undefined &&
    paths !== undefined &&
    !paths.some((path) => passesFilter(wanted, path))
  )
    return { kind: 'leave', why: 'paths: no file that was changed matches' };
  return { kind: 'run', group: groupOf(spec, change), source: sourceOf(change, untrusted) };
}

const mustAsk = (filter: ChangeFilter, { paths }: RepositoryChange): boolean =>
  filter.paths !== undefined && paths === undefined;

/** Tags are their own change sets. */
function groupOf(
  { name, repository }: Spec,
  { branch, ref, pullRequest }: RepositoryChange,
): string {
  return jobGroupId({ job: name, repository, base: branch ?? ref, ...defined({ pullRequest }) });
}

function sourceOf(
  { event, commit, ref, branch, pullRequest }: RepositoryChange,
  untrusted: boolean,
): JobSource {
  return {
    event,
    commit,
    ref,
    ...(event === 'pull_request' ? defined({ base: branch, pullRequest }) : {}),
    ...(untrusted ? { untrusted } : {}),
  };
}

/** It comes from outside: what cannot be read is `undefined`. */
export function readChange(body: RepositoryChange | undefined): RepositoryChange | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { event, commit, ref, branch, pullRequest, trusted, paths, at } = body;
  const isRead =
    (event === 'push'
      ? pullRequest === undefined
      : event === 'pull_request' && Number.isSafeInteger(pullRequest) && branch !== undefined) &&
    typeof commit === 'string' &&
    COMMIT.test(commit) &&
    isRef(ref) &&
    (branch === undefined || isRef(branch)) &&
    !Number.isNaN(Date.parse(at)) &&
    (paths === undefined ||
      (Array.isArray(paths) && paths.every((path) => typeof path === 'string')));
  return isRead
    ? {
        event,
        commit,
        ref,
        at,
        ...defined({ branch, pullRequest, paths }),
        ...(trusted === true ? { trusted } : {}),
      }
    : undefined;
}

const isRef = (text: unknown): boolean => typeof text === 'string' && REF.test(text);

/** For people: `push of 4f2a9c1 to refs/heads/main`. */
export function changeText({ event, commit, ref }: RepositoryChange): string {
  return `${event === 'push' ? 'push' : 'pull request'} of ${commit.slice(0, 12)} (${ref})`;
}
