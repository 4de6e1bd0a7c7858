import type { Scope } from '../../../core/domain/ciServer.ts';

/**
 * Returns whether the API is that of github.com or GitHub Enterprise Cloud with data residency
 * (`api.NAME.ghe.com`), where rate limits are always enabled.
 */
export function isGitHubCloud(apiUrl: string): boolean {
  const host = new URL(apiUrl).hostname;
  return host === 'api.github.com' || (host.startsWith('api.') && host.endsWith('.ghe.com'));
}

/**
 * Returns the web URL for people and runners from the URL of the API: `https://api.github.com` →
 * `https://github.com`, `https://api.NAME.ghe.com` → `https://NAME.ghe.com`, `https://HOST/api/v3`
 * → `https://HOST`.
 * https://docs.github.com/en/rest/using-the-rest-api/getting-started-with-the-rest-api
 */
export function webUrlOf(apiUrl: string): string {
  const url = new URL(apiUrl);
  if (isGitHubCloud(apiUrl)) return `${url.protocol}//${url.host.replace(/^api\./, '')}`;
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/api\/v3\/?$/, '').replace(/\/+$/, '')}`;
}

/** Returns the argument of `config.sh --url` for this scope. */
export function registrationUrl(webUrl: string, scope: Scope): string {
  const path = scope.name.split('/').map(encodeURIComponent).join('/');
  return scope.kind === 'enterprise' ? `${webUrl}/enterprises/${path}` : `${webUrl}/${path}`;
}

/**
 * Returns the route prefix of a scope and its parameters. The prefix is a template, so that metrics
 * and logs have few distinct routes.
 */
export function scopeRoute(scope: Scope): { prefix: string; parameters: Record<string, string> } {
  switch (scope.kind) {
    case 'organization':
      return { prefix: '/orgs/{org}', parameters: { org: scope.name } };
    case 'enterprise':
      return { prefix: '/enterprises/{enterprise}', parameters: { enterprise: scope.name } };
    case 'repository': {
      const [owner = '', repo = ''] = scope.name.split('/');
      return { prefix: '/repos/{owner}/{repo}', parameters: { owner, repo } };
    }
  }
}

/**
 * Returns the scope as a path: `orgs/acme`, `repos/acme/web`, `enterprises/big`. The image of the
 * runner gets it as RUNNER_SCOPE.
 */
export function scopePath(scope: Scope): string {
  const collection = { organization: 'orgs', repository: 'repos', enterprise: 'enterprises' }[
    scope.kind
  ];
  return `${collection}/${scope.name}`;
}
