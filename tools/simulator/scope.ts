import type { ScopePath } from './types.ts';

/** Whether `text` matches a pattern in which `*` stands for anything (case-insensitive, as GitHub's names are). */
export function matchesGlob(pattern: string, text: string): boolean {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`, 'i').test(text);
}

/**
 * The scope a runner's URL means: `https://host/acme` an organization, `https://host/acme/widgets` a repository,
 * `https://host/enterprises/big` an enterprise (the `--url` of the real runner's config.sh).
 */
export function scopeUrlPath(scope: ScopePath): string {
  return scope.replace(/^(orgs|repos)\//, '');
}

/**
 * Whether runners of a scope may take a repository's jobs.
 * @param enterprises enterprise → its organizations; one not named owns every organization
 */
export function scopeServes(
  scope: ScopePath,
  repo: string,
  enterprises: Readonly<Record<string, readonly string[]>>,
): boolean {
  const owner = (repo.split('/')[0] ?? '').toLowerCase();
  const [kind, ...rest] = scope.toLowerCase().split('/');
  const name = rest.join('/');
  if (kind === 'repos') return name === repo.toLowerCase();
  if (kind === 'orgs') return name === owner;
  const organizations = Object.entries(enterprises).find(
    ([enterprise]) => enterprise.toLowerCase() === name,
  )?.[1];
  return (
    organizations === undefined ||
    organizations.some((organization) => organization.toLowerCase() === owner)
  );
}

/** Whether a runner with these labels can take a job that asks for those (case-insensitive, all of them). */
export function labelsCover(
  runnerLabels: readonly string[],
  jobLabels: readonly string[],
): boolean {
  const has = new Set(runnerLabels.map((label) => label.toLowerCase()));
  return jobLabels.every((label) => has.has(label.toLowerCase()));
}
