import type { Scope } from '../../../core/domain/ciServer.ts';
import type { RestApi } from '../github/api.ts';
import type { RestRequest } from '../github/restRequest.ts';
import { ENTERPRISE_OF_SERVER } from '../../../core/domain/ciServerKind.ts';
import { organizationAnswer, userAnswer } from './responses.ts';

/** Route prefix of a scope, as a template, with its parameters. */
export interface ScopeRoute {
  readonly prefix: '/repos/{owner}/{repo}' | '/orgs/{org}' | '/user' | '/admin';
  readonly parameters: Readonly<Record<string, string>>;
  /** The scope in error messages. */
  readonly subject: string;
}

/**
 * Routes of scopes. An owner may be an organization, or the user whose token it is. Gitea has
 * different routes for them. An organization is remembered, the user of a token is not.
 */
export class GiteaScopes {
  readonly #api: RestApi;
  readonly #organizations = new Map<string, ScopeRoute>();

  constructor(api: RestApi) {
    this.#api = api;
  }

  /**
   * Returns the route of a scope.
   * @throws CiServerError `rejected` for an enterprise other than the instance; otherwise of every
   * kind but `busy`
   */
  async route({ kind, name }: Scope, signal?: AbortSignal): Promise<ScopeRoute> {
    signal?.throwIfAborted();
    const subject = `${kind} ${name}`;
    switch (kind) {
      case 'repository': {
        const [owner = '', repo = ''] = name.split('/');
        return { prefix: '/repos/{owner}/{repo}', parameters: { owner, repo }, subject };
      }
      case 'enterprise':
        if (name === ENTERPRISE_OF_SERVER.gitea)
          return { prefix: '/admin', parameters: {}, subject };
        throw this.#api.toError(
          'rejected',
          this.#look('GET /admin/actions/runners', {}, subject),
          `enterprise: must be "${ENTERPRISE_OF_SERVER.gitea}" for Gitea, got "${name}"`,
        );
      case 'organization': {
        const known = this.#organizations.get(name) ?? (await this.#owner(name, subject, signal));
        return known;
      }
    }
  }

  async #owner(org: string, subject: string, signal?: AbortSignal): Promise<ScopeRoute> {
    const asOrganization: ScopeRoute = { prefix: '/orgs/{org}', parameters: { org }, subject };
    const request = this.#look('GET /orgs/{org}', { org }, subject);
    const answer = await this.#api.request(request, signal);
    if (answer.status !== 404) {
      this.#api.parse(organizationAnswer, answer, request);
      this.#organizations.set(org, asOrganization);
      return asOrganization;
    }
    const self = this.#look('GET /user', {}, subject);
    const { login } = this.#api.parse(userAnswer, await this.#api.request(self, signal), self);
    // Not remembered: the credential may be able to see the organization later, and a token that
    // replaces this one may be that of another user.
    return login.toLowerCase() === org.toLowerCase()
      ? { prefix: '/user', parameters: {}, subject }
      : asOrganization;
  }

  #look(route: string, parameters: Record<string, string>, subject: string): RestRequest {
    return { call: 'list', route, parameters, subject };
  }
}
