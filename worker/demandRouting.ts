/** Which set a job is for. */
import type { JobEvent, ScopeKind, SetCover } from '../workflows/setContract.ts';

/** A running set, as far as the choice needs it. */
export interface CoveringSet {
  readonly workflowId: string;
  readonly cover: SetCover;
}

/** More labels than a runner can have (GitHub: 100): no set can cover the job, and its labels are not worth looking at. */
const MAX_LABELS = 100;
const NARROWEST_FIRST: readonly ScopeKind[] = ['repository', 'organization', 'enterprise'];

/**
 * The one set that has to serve a job: its scope holds the repository, and its labels cover the job's. Of several the one with the
 * fewest labels that the job does not ask for (a plain job must not occupy the runner with a GPU), then with the narrowest scope, then
 * by name: a function of the job and the sets alone, so that every replica sends every event of a job to the same set.
 *
 * The runner group decides nothing: GitHub names it only once a runner has the job, and then it would be another choice than before.
 */
export function chooseSet<T extends CoveringSet>(job: Pick<JobEvent, 'repository' | 'labels'>, enterprise: string | undefined, sets: readonly T[]): T | undefined {
  const wanted = labelsToCover(job.labels);
  if (wanted === undefined) return undefined;
  const covering = sets.filter(({ cover }) => holds(cover, job.repository, enterprise) && covers(cover.labels, wanted));
  const rank = ({ cover }: T): number => NARROWEST_FIRST.indexOf(cover.scopeKind);
  return covering.toSorted((a, b) => extraLabels(a, wanted) - extraLabels(b, wanted) || rank(a) - rank(b) || (a.workflowId < b.workflowId ? -1 : 1))[0];
}

/** Every label but `self-hosted`, which each of our runners has in GitHub's eyes; lower case. */
function labelsToCover(labels: readonly string[]): ReadonlySet<string> | undefined {
  if (labels.length > MAX_LABELS) return undefined;
  const wanted = lowerCase(labels);
  wanted.delete('self-hosted');
  return wanted;
}

const lowerCase = (labels: readonly string[]): Set<string> => new Set(labels.map((label) => label.toLowerCase()));

function extraLabels({ cover }: CoveringSet, wanted: ReadonlySet<string>): number {
  return [...lowerCase(cover.labels)].filter((label) => label !== 'self-hosted' && !wanted.has(label)).length;
}

function covers(labels: readonly string[], wanted: ReadonlySet<string>): boolean {
  const has = lowerCase(labels);
  return [...wanted].every((label) => has.has(label));
}

function holds({ scope, scopeKind }: SetCover, repository: string, enterprise: string | undefined): boolean {
  const owner = repository.split('/')[0];
  const name = { repository, organization: owner, enterprise }[scopeKind];
  return name !== undefined && name.toLowerCase() === scope.toLowerCase();
}
