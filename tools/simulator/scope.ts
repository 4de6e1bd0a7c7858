import type { ScopePath } from './types.ts';

/**
 * Whether `text` matches a pattern in which `*` stands for any text (case-insensitive, as names on
 * GitHub).
 */
export function matchesGlob(pattern: string, text: string): boolean {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`, 'i').test(text);
}

/**
 * Returns the URL path of a scope, as in `--url` of config.sh: `https://host/acme` for an
 * organization, `https://host/acme/widgets` for a repository, `https://host/enterprises/big` for an
 * enterprise.
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

/**
 * Whether a runner with these labels can take a job with the requested ones: it must have all of
 * them (case-insensitive).
 */
export function labelsCover(
  runnerLabels: readonly string[],
  jobLabels: readonly string[],
): boolean {
  const has = new Set(runnerLabels.map((label) => label.toLowerCase()));
  return jobLabels.every((label) => has.has(label.toLowerCase()));
}
