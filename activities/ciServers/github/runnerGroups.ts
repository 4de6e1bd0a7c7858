import type { RunnerGroupRef, Scope } from '../../../core/domain/ciServer.ts';
import type { Clock } from '../clock.ts';
import { scopeRoute } from './addresses.ts';
import { runnerGroupListAnswer, type RunnerGroup } from './responses.ts';
import type { RestApi } from './api.ts';
import type { RestRequest } from './restRequest.ts';
import { ExpiringCache } from './expiringCache.ts';

/**
 * ID of the default group. Every organization and enterprise has it, and repositories have no
 * other.
 */
export const DEFAULT_GROUP_ID = '1';
/** Maximum age of a cached list (ms). People create and rename groups rarely. */
const KEPT_MS = 10 * 60_000;
/**
 * Maximum age of a list that proves that a group does not exist (ms). A group that is missing from
 * an older list may have been created since.
 */
const YOUNG_MS = 60_000;
const PAGE = 100;
/** Maximum pages of a list. More than ten thousand groups are an error. */
const MAX_PAGES = 100;

interface ReadGroups {
  readonly groups: readonly RunnerGroup[];
  readonly atMs: number;
}

/**
 * Runner groups of organizations and enterprises, by name and by ID. People and `config.sh` use the
 * name; `generate-jitconfig` takes the ID.
 * https://docs.github.com/en/rest/actions/self-hosted-runner-groups
 */
export class RunnerGroups {
  readonly #api: RestApi;
  readonly #clock: Clock;
  readonly #lists = new Map<string, ExpiringCache<ReadGroups>>();

  constructor(api: RestApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /**
   * Returns the numeric ID of a group.
   * @throws CiServerError `rejected` for an ID that GitHub cannot have assigned, and for a name
   * that no group has
   */
  async resolveId(scope: Scope, group: RunnerGroupRef, signal?: AbortSignal): Promise<number> {
    if (group !== 'default' && 'name' in group) return await this.#idOf(scope, group.name, signal);
    const id = group === 'default' ? DEFAULT_GROUP_ID : group.id;
    if (/^[1-9]\d{0,14}$/.test(id)) return Number(id);
    throw this.#api.toError(
      'rejected',
      this.#request(scope),
      `runner group ${id} does not exist: check runnerGroupId, a whole number at GitHub`,
    );
  }

  /**
   * Returns the name for `config.sh`, or `undefined` for the default group, which `config.sh` uses
   * by itself.
   * @throws CiServerError `rejected` if there is no such group
   */
  async resolveName(
    { scope, group }: { readonly scope: Scope; readonly group: RunnerGroupRef },
    signal?: AbortSignal,
  ): Promise<string | undefined> {
    const id = await this.resolveId(scope, scope.kind === 'repository' ? 'default' : group, signal);
    return String(id) === DEFAULT_GROUP_ID ? undefined : await this.#nameOf(scope, id, signal);
  }

  /**
   * Finds a group by name, ignoring case as `config.sh` does:
   * https://github.com/actions/runner/blob/main/src/Runner.Listener/Configuration/ConfigurationManager.cs
   * @throws CiServerError `rejected` if no group has this name
   */
  async #idOf(scope: Scope, name: string, signal?: AbortSignal): Promise<number> {
    const wanted = name.toLowerCase();
    const { found, groups } = await this.#find(
      scope,
      (group) => group.name.toLowerCase() === wanted,
      signal,
    );
    if (found !== undefined) return found.id;
    const known = groups.map((group) => `"${group.name}"`).join(', ');
    throw this.#api.toError(
      'rejected',
      this.#request(scope),
      `there is no runner group "${name}": check runnerGroup; the credential sees ${known === '' ? 'none' : shortened(known)}`,
    );
  }

  async #nameOf(scope: Scope, id: number, signal?: AbortSignal): Promise<string> {
    const { found } = await this.#find(scope, (group) => group.id === id, signal);
    if (found === undefined)
      throw this.#api.toError(
        'rejected',
        this.#request(scope),
        `runner group ${id} does not exist: check runnerGroupId`,
      );
    return found.name;
  }

  /**
   * Checks that public repositories may not use a group, as GitHub says at most 10 minutes ago.
   * Repositories have no groups.
   * @throws CiServerError `rejected` if they may, or if GitHub does not say
   */
  async rejectPublic(scope: Scope, group: RunnerGroupRef, signal?: AbortSignal): Promise<void> {
    if (scope.kind === 'repository') return;
    const id = await this.resolveId(scope, group, signal);
    const { found } = await this.#find(scope, (each) => each.id === id, signal);
    if (found?.allows_public_repositories === false) return;
    throw this.#api.toError(
      'rejected',
      this.#request(scope),
      `runner group ${found === undefined ? id : `"${found.name}"`} may be used by public repositories, which the credential does not allow: change the group at GitHub, use another, or set allowPublicRepositories of the credential`,
    );
  }

  /** Returns the names of the groups that public repositories may use. */
  async publicNames(scope: Scope, signal?: AbortSignal): Promise<string[]> {
    const { groups } = await this.#listOf(scope).get(signal);
    return groups
      .filter((group) => group.allows_public_repositories === true)
      .map(({ name }) => name);
  }

  /** Drops the cached list of a scope, after it turned out to be outdated. */
  forget(scope: Scope): void {
    this.#lists.delete(keyOf(scope));
  }

  async #find(
    scope: Scope,
    matches: (group: RunnerGroup) => boolean,
    signal?: AbortSignal,
  ): Promise<{ found: RunnerGroup | undefined; groups: readonly RunnerGroup[] }> {
    const list = this.#listOf(scope);
    let read = await list.get(signal);
    let found = read.groups.find(matches);
    if (found === undefined && this.#clock.now() - read.atMs >= YOUNG_MS) {
      list.forget(read);
      read = await list.get(signal);
      found = read.groups.find(matches);
    }
    return { found, groups: read.groups };
  }

  #listOf(scope: Scope): ExpiringCache<ReadGroups> {
    const key = keyOf(scope);
    const known = this.#lists.get(key);
    if (known !== undefined) return known;
    const fetch = async (): Promise<{ value: ReadGroups; expiresAtMs: number }> => {
      const atMs = this.#clock.now();
      return { value: { groups: await this.#read(scope), atMs }, expiresAtMs: atMs + KEPT_MS };
    };
    const list = new ExpiringCache(fetch, 0, this.#clock);
    this.#lists.set(key, list);
    return list;
  }

  async #read(scope: Scope): Promise<RunnerGroup[]> {
    const all: RunnerGroup[] = [];
    for (let page = 1; page <= MAX_PAGES; page++) {
      const request = this.#request(scope, page);
      const { runner_groups, total_count } = this.#api.parse(
        runnerGroupListAnswer,
        await this.#api.request(request),
        request,
      );
      all.push(...runner_groups);
      if (runner_groups.length === 0 || page * PAGE >= total_count) return all;
    }
    throw this.#api.toError(
      'unavailable',
      this.#request(scope),
      'the list of runner groups does not end',
    );
  }

  #request(scope: Scope, page = 1): RestRequest {
    const { prefix, parameters } = scopeRoute(scope);
    return {
      call: 'group',
      route: `GET ${prefix}/actions/runner-groups`,
      parameters: { ...parameters, per_page: PAGE, page },
      subject: `${scope.kind} ${scope.name}`,
    };
  }
}

const keyOf = ({ kind, name }: Scope): string => `${kind}:${name.toLowerCase()}`;
const LONGEST = 300;
const shortened = (text: string): string =>
  text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
