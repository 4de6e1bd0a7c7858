/** Which set a job is for. */
import { comparable, labelsCover } from './labels.ts';
import type { JobEvent, ScopeKind, SetCover } from '../contract/index.ts';

/** A running set, as far as the choice needs it. */
export interface CoveringSet {
  readonly workflowId: string;
  readonly cover: SetCover;
}

const NARROWEST_FIRST: readonly ScopeKind[] = ['repository', 'organization', 'enterprise'];

/**
 * The one set that has to serve a job: its scope holds the repository, and its labels cover the job's. Of several the one with the
 * fewest labels that the job does not ask for (a plain job must not occupy the runner with a GPU), then with the narrowest scope, then
 * by name: a function of the job and the sets alone, so that every replica sends every event of a job to the same set.
 *
 * The runner group decides nothing: GitHub names it only once a runner has the job, and then it would be another choice than before.
 */
export function chooseSet<T extends CoveringSet>(job: Pick<JobEvent, 'repository' | 'labels'>, enterprise: string | undefined, sets: readonly T[]): T | undefined {
  const covering = sets.filter(({ cover }) => holds(cover, job.repository, enterprise) && labelsCover(cover.labels, job.labels));
  const wanted = comparable(job.labels);
  const extra = ({ cover }: T): number => [...comparable(cover.labels)].filter((label) => !wanted.has(label)).length;
  const rank = ({ cover }: T): number => NARROWEST_FIRST.indexOf(cover.scopeKind);
  return covering.toSorted((a, b) => extra(a) - extra(b) || rank(a) - rank(b) || (a.workflowId < b.workflowId ? -1 : 1))[0];
}

function holds({ scope, scopeKind }: SetCover, repository: string, enterprise: string | undefined): boolean {
  const owner = repository.split('/')[0];
  const name = { repository, organization: owner, enterprise }[scopeKind];
  return name !== undefined && name.toLowerCase() === scope.toLowerCase();
}
