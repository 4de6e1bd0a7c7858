import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { CiRunner, CiServer, Registration } from '../../ports/ciServer.ts';
import type { CiServerError } from '../../ports/ciServerError.ts';
import { SharedSearch } from '../sharedSearch.ts';
import { registrationUrl, scopePath, scopeRoute, webUrlOf } from './addresses.ts';
import {
  deprecationAnswer,
  jitAnswer,
  jobAnswer,
  registrationTokenAnswer,
  runnerAnswer,
  runnerListAnswer,
} from './responses.ts';
import { RestApi, type RestResponse, type RestApiOptions, type RestRequest } from './api.ts';
import type { RestCall } from './classify.ts';
import { WebhookRedelivery } from './deliveries.ts';
import { normalizeGitHubRunnerLabels } from './labels.ts';
import { ExpiringCache, type Expiring } from './expiringCache.ts';
import { GitHubJobReruns } from './jobReruns.ts';
import { PollBudget } from './pollBudget.ts';
import { QueuedJobs, jobOf } from './queuedJobs.ts';
import { DEFAULT_GROUP_ID, RunnerGroups } from './runnerGroups.ts';
import { GitHubScaleSets } from './scaleSets.ts';
import { Tenant } from './tenant.ts';
import type {
  CiJob,
  CiJobList,
  RegisterRequest,
  Scope,
  VersionDeadline,
} from '../../../core/domain/ciServer.ts';
import type { CiServerTraits } from '../../../core/domain/ciServerTraits.ts';

/**
 * Minimum remaining validity of a registration token (ms). Tokens are valid for an hour, and a pod
 * may take long to start.
 */
const MIN_TOKEN_VALIDITY_MS = 30 * 60_000;
const PAGE_SIZE = 100;
/**
 * Maximum pages of a list of runners. A group may contain at most 10,000 runners, so a longer list
 * is an error.
 */
const MAX_PAGES = 200;
/**
 * Maximum number of lists cached with their ETags. Enough for those of all runs in progress in an
 * organization with hundreds of repositories.
 */
const MAX_CACHED_LISTS = 5_000;
/**
 * Budget of list requests per process. Together with those for single jobs, it is a fifth of
 * GitHub's lowest limit for a credential.
 */
const LIST_BUDGET = { requests: 700, everyMs: 3_600_000 };
/**
 * Budget of requests for single jobs, separate from the lists, which thousands of runs can use up.
 * Its intervals are short, so that jobs that merely wait for long do not use up the requests for
 * jobs whose end was lost.
 */
const JOB_BUDGET = { requests: 25, everyMs: 300_000 };

const DAY_MS = 24 * 3_600_000;

/** Capabilities and limits of GitHub. */
export const GITHUB_TRAITS: CiServerTraits = {
  refusesBusyRemoval: true,
  canDisable: false,
  singleUseRegistration: true,
  runnerOutlivesRegistration: false,
  groups: { defaultId: DEFAULT_GROUP_ID },
  // https://docs.github.com/en/actions/reference/limits: a job that finds no runner is ended after
  // 24 hours, a running one after 5 days.
  jobLimits: { queuedMs: DAY_MS, runningMs: 5 * DAY_MS },
};

/** Client of GitHub (github.com, *.ghe.com, Enterprise Server) with one credential. */
export class GitHubCiServer implements CiServer {
  readonly kind = 'github';
  readonly traits = GITHUB_TRAITS;
  readonly #api: RestApi;
  readonly #options: RestApiOptions;
  readonly #webUrl: string;
  readonly #groups: RunnerGroups;
  readonly #registrationTokens = new Map<string, ExpiringCache<string>>();
  /**
   * Parsed responses by request. GitHub's lists of runs are megabytes, of which only some IDs are
   * needed.
   */
  readonly #responseCache = new LRUCache<
    string,
    { readonly etag: string; readonly value: unknown }
  >({
    max: MAX_CACHED_LISTS,
  });
  readonly #queuedJobs: SharedSearch;
  readonly #pollBudgets: { readonly lists: PollBudget; readonly jobs: PollBudget };
  readonly reruns?: GitHubJobReruns;
  readonly redeliverFailed?: NonNullable<CiServer['redeliverFailed']>;
  readonly scaleSets: GitHubScaleSets;
  readonly #tenant: Tenant;

  constructor(options: RestApiOptions) {
    this.#options = options;
    this.#api = new RestApi(options);
    this.#queuedJobs = new SharedSearch(
      options.clock,
      async (scope) => await this.#searchJobs(scope),
    );
    this.#pollBudgets = {
      lists: new PollBudget(LIST_BUDGET, options.clock),
      jobs: new PollBudget(JOB_BUDGET, options.clock),
    };
    this.#groups = new RunnerGroups(this.#api, options.clock);
    this.#webUrl = options.credential.webUrl ?? webUrlOf(options.credential.apiUrl);
    this.#tenant = new Tenant(options, this.#api, this.#webUrl, (scope) =>
      this.#registrationToken(scope),
    );
    this.scaleSets = new GitHubScaleSets(
      this.#tenant,
      async (scope, group, signal) => await this.#groups.resolveId(scope, group, signal),
    );
    if (options.credential.reruns) this.reruns = new GitHubJobReruns(this.#api, options.credential);
    // GitHub supports redelivery for Apps only.
    if (options.credential.type !== 'app') return;
    const deliveries = new WebhookRedelivery(this.#api, options.clock);
    this.redeliverFailed = async (limits, signal) =>
      await deliveries.redeliverFailed(limits, signal);
  }

  isReachable(): boolean {
    return this.#api.isReachable();
  }

  async register(request: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    if (!this.#options.credential.allowPublicRepositories)
      await this.#groups.rejectPublic(request.scope, request.group, signal);
    if (request.scaleSet !== undefined)
      return await this.#registerInScaleSet(request, request.scaleSet, signal);
    return request.mode === 'jit'
      ? this.#registerJit(request, signal)
      : this.#registerWithToken(request, signal);
  }

  async findRunner(
    scope: Scope,
    runner: { id?: string; name: string },
    signal?: AbortSignal,
  ): Promise<CiRunner | undefined> {
    return runner.id === undefined
      ? this.#findByName(scope, runner.name, signal)
      : this.#findById(scope, runner.id, signal);
  }

  async removeRegistration(
    scope: Scope,
    runnerId: string,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'> {
    const request = this.#request('remove', 'DELETE', scope, '/actions/runners/{runner_id}', {
      runner_id: this.#idOf(scope, runnerId),
    });
    const answer = await this.#ask(request, scope, signal);
    if (answer.status === 204) return 'removed';
    if (answer.status === 404) return 'absent';
    throw this.#api.toError(
      'unavailable',
      request,
      'unexpected response to a removal, must be 204; check for a proxy or a login page in between',
      answer.status,
    );
  }

  /**
   * Lists the queued jobs of a scope. Concurrent calls for a scope share one search, which is not
   * aborted for one of them.
   */
  async listQueuedJobs(
    scope: Scope,
    labels?: readonly string[],
    signal?: AbortSignal,
    maxAgeMs = 0,
  ): Promise<CiJobList> {
    const offered = labels && new Set(normalizeGitHubRunnerLabels(labels));
    return await this.#queuedJobs.list(scope, { offered, maxAgeMs }, signal);
  }

  async getJob(
    scope: Scope,
    { id, repository }: { readonly id: string; readonly repository: string },
    signal?: AbortSignal,
  ): Promise<CiJob | 'absent' | undefined> {
    const [owner = '', repo = ''] = repository.split('/');
    const isWithin =
      scope.kind === 'enterprise' ||
      [repository, owner].some((name) => name.toLowerCase() === scope.name.toLowerCase());
    if (!isWithin || !this.#pollBudgets.jobs.left) return undefined;
    const request: RestRequest = {
      call: 'jobs',
      route: 'GET /repos/{owner}/{repo}/actions/jobs/{job_id}',
      parameters: { owner, repo, job_id: id },
      subject: `job ${id} of ${repository}`,
    };
    this.#pollBudgets.jobs.spend();
    const answer = await this.#api.request(request, signal);
    // The job may be deleted with its run, or the credential cannot see the repository.
    if (answer.status === 404) return undefined;
    return jobOf(this.#api.parse(jobAnswer, answer, request), repository) ?? 'absent';
  }

  async #searchJobs(scope: Scope): Promise<CiJobList> {
    // A 404 for the scope itself concerns the credential and is not tolerated.
    const tolerant = scope.kind === 'organization' ? '/repos/{owner}/{repo}' : '/runs/{run_id}';
    const found = await new QueuedJobs(
      (schema, request) => this.#requestList(schema, request, request.route.includes(tolerant)),
      this.#options.credential.type === 'app',
    ).of(scope);
    const { lists } = this.#pollBudgets;
    if (found.complete || found.unsupported === true || lists.left) return found;
    return { ...found, budgetUntil: Math.round(this.#options.clock.now() + lists.renewsInMs) };
  }

  /**
   * Returns a list that is often unchanged, using its ETag.
   * @returns `undefined` if the list cannot be seen, or not now
   */
  async #requestList<T extends z.ZodType>(
    schema: T,
    request: RestRequest,
    mayBeAbsent: boolean,
  ): Promise<z.output<T> | undefined> {
    const key = `${request.route} ${JSON.stringify(request.parameters)}`;
    const kept = this.#responseCache.get(key);
    if (!this.#pollBudgets.lists.left) return undefined;
    const answer = await this.#api.request({ ...request, ...omitUndefined({ etag: kept?.etag }) });
    if (kept && answer.status === 304) return kept.value as z.output<T>;
    this.#pollBudgets.lists.spend();
    if (mayBeAbsent && answer.status === 404) return undefined;
    const value = this.#api.parse(schema, answer, request);
    if (answer.etag !== undefined) this.#responseCache.set(key, { etag: answer.etag, value });
    return value;
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await Promise.all([this.#api.close(), this.#tenant.close()]);
  }

  async #registerInScaleSet(
    request: RegisterRequest,
    scaleSet: string,
    signal?: AbortSignal,
  ): Promise<Registration> {
    const { id, name, jitConfig } = await this.scaleSets.register(request, scaleSet, signal);
    return {
      runnerName: name,
      runnerId: id,
      env: { ...RUNNER_ENV, ACTIONS_RUNNER_INPUT_JITCONFIG: jitConfig },
    };
  }

  async #registerJit(wanted: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    const { scope, name, group, labels } = wanted;
    const groupId = await this.#groups.resolveId(scope, group, signal);
    const request = this.#request('jit', 'POST', scope, '/actions/runners/generate-jitconfig', {
      name,
      runner_group_id: groupId,
      labels,
      work_folder: '_work',
    });
    if (!wanted.ephemeral)
      throw this.#api.toError(
        'rejected',
        request,
        'a just-in-time runner is always ephemeral: register a static runner with a token',
      );
    const answer = await this.#ask(request, scope, signal);
    if (answer.status === 404) {
      this.#groups.forget(scope);
      const what =
        group !== 'default' && 'name' in group
          ? `"${group.name}" (${groupId}) may not be used or does not exist; check runnerGroup`
          : `${groupId} does not exist or may not be used: check runnerGroupId`;
      throw this.#api.toError('rejected', request, `runner group ${what}`, 404);
    }
    const jit = this.#api.parse(jitAnswer, answer, request);
    return {
      runnerName: jit.runner.name,
      runnerId: jit.runner.id,
      env: { ...RUNNER_ENV, ACTIONS_RUNNER_INPUT_JITCONFIG: jit.encoded_jit_config },
    };
  }

  async #registerWithToken(wanted: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    const { scope, name, labels, ephemeral, disableUpdate } = wanted;
    const group = await this.#groups.resolveName(wanted, signal);
    const token = await this.#registrationToken(scope).get(signal);
    return {
      runnerName: name,
      env: omitUndefined({
        ...RUNNER_ENV,
        RUNNER_TOKEN: token,
        RUNNER_URL: registrationUrl(this.#webUrl, scope),
        RUNNER_SCOPE: scopePath(scope),
        RUNNER_NAME: name,
        RUNNER_LABELS: labels.join(','),
        RUNNER_EPHEMERAL: String(ephemeral),
        RUNNER_GROUP: group,
        RUNNER_DISABLE_UPDATE: disableUpdate === true ? 'true' : undefined,
      }),
    };
  }

  #registrationToken(scope: Scope): ExpiringCache<string> {
    const key = `${scope.kind}:${scope.name}`;
    const known = this.#registrationTokens.get(key);
    if (known !== undefined) return known;
    const request = this.#request(
      'registration_token',
      'POST',
      scope,
      '/actions/runners/registration-token',
      {},
    );
    const fetch = async (): Promise<Expiring<string>> => {
      const { token, expires_at } = this.#api.parse(
        registrationTokenAnswer,
        await this.#api.request(request),
        request,
      );
      return { value: token, expiresAtMs: Date.parse(expires_at) };
    };
    const value = new ExpiringCache(fetch, MIN_TOKEN_VALIDITY_MS, this.#options.clock);
    this.#registrationTokens.set(key, value);
    return value;
  }

  async publicGroups(scope: Scope, signal?: AbortSignal): Promise<string[]> {
    return scope.kind === 'repository' ? [] : await this.#groups.publicNames(scope, signal);
  }

  async runnerGroupId(scope: Scope, name: string, signal?: AbortSignal): Promise<string> {
    return String(await this.#groups.resolveId(scope, { name }, signal));
  }

  async #findById(scope: Scope, id: string, signal?: AbortSignal): Promise<CiRunner | undefined> {
    const request = this.#request('runner', 'GET', scope, '/actions/runners/{runner_id}', {
      runner_id: this.#idOf(scope, id),
    });
    const answer = await this.#ask(request, scope, signal);
    return answer.status === 404 ? undefined : this.#api.parse(runnerAnswer, answer, request);
  }

  async listRunners(scope: Scope, signal?: AbortSignal): Promise<CiRunner[]> {
    const found = new Map<string, CiRunner>();
    let rows = 0;
    for (let page = 1; page <= MAX_PAGES; page++) {
      const request = this.#request('list', 'GET', scope, '/actions/runners', {
        per_page: PAGE_SIZE,
        page,
      });
      const { runners, total_count } = this.#api.parse(
        runnerListAnswer,
        await this.#api.request(request, signal),
        request,
      );
      rows += runners.length;
      // A runner that is added or removed meanwhile moves others to another page. They are seen
      // twice, or the next time.
      for (const runner of runners) found.set(runner.id, runner);
      if (rows >= total_count) return [...found.values()];
      if (runners.length === 0)
        throw this.#api.toError(
          'unavailable',
          request,
          `the list of runners ends after ${rows} of ${total_count}`,
        );
    }
    throw this.#listTooLong(scope);
  }

  async versionDeadline(
    scope: Scope,
    version: string,
    signal?: AbortSignal,
  ): Promise<VersionDeadline | undefined> {
    const request = this.#request(
      'runner',
      'GET',
      scope,
      '/actions/runners/deprecations/{version}',
      {
        version,
      },
    );
    // Enterprise Server has no such list yet.
    const answer = await this.#ask(request, scope, signal);
    return answer.status === 404 ? undefined : this.#api.parse(deprecationAnswer, answer, request);
  }

  /**
   * Finds a runner by name. It needs one request if the server filters by name. Otherwise the list
   * is read to its end.
   */
  async #findByName(
    scope: Scope,
    name: string,
    signal?: AbortSignal,
  ): Promise<CiRunner | undefined> {
    for (let page = 1; page <= MAX_PAGES; page++) {
      const request = this.#request('list', 'GET', scope, '/actions/runners', {
        name,
        per_page: PAGE_SIZE,
        ...(page === 1 ? {} : { page }),
      });
      const { runners, total_count } = this.#api.parse(
        runnerListAnswer,
        await this.#api.request(request, signal),
        request,
      );
      const found = runners.find((runner) => runner.name === name);
      if (found !== undefined) return found;
      if (runners.length === 0 || page * PAGE_SIZE >= total_count) return undefined;
    }
    throw this.#listTooLong(scope);
  }

  #listTooLong(scope: Scope): CiServerError {
    return this.#api.toError(
      'unavailable',
      this.#request('list', 'GET', scope, '/actions/runners', {}),
      'the list of runners does not end',
    );
  }

  /**
   * Sends a request and verifies a 404. After a 404, the scope is listed: if that works, the
   * credential sees the scope. The credential may have regained access since the first 404, so the
   * request is sent again and only its second 404 counts.
   * @throws CiServerError `credentials` if the credential cannot see the scope; otherwise as
   * {@link RestApi.request}
   */
  async #ask(request: RestRequest, scope: Scope, signal?: AbortSignal): Promise<RestResponse> {
    const answer = await this.#api.request(request, signal);
    if (answer.status !== 404) return answer;
    const list = this.#request('list', 'GET', scope, '/actions/runners', { per_page: 1 });
    this.#api.parse(runnerListAnswer, await this.#api.request(list, signal), list);
    return await this.#api.request(request, signal);
  }

  /**
   * Validates an ID. GitHub returns 404 for anything that is not one of its IDs, which would look
   * like proof that the runner is gone.
   */
  #idOf(scope: Scope, id: string): string {
    if (/^[1-9]\d*$/.test(id)) return id;
    const list = this.#request('list', 'GET', scope, '/actions/runners', {});
    throw this.#api.toError('rejected', list, `runner id: must be a number, got "${id}"`);
  }

  #request(
    call: RestCall,
    method: string,
    scope: Scope,
    path: string,
    parameters: Record<string, unknown>,
  ): RestRequest {
    const { prefix, parameters: scopeParameters } = scopeRoute(scope);
    const subject =
      'name' in parameters
        ? `${scope.kind} ${scope.name}, runner ${String(parameters['name'])}`
        : `${scope.kind} ${scope.name}`;
    return {
      call,
      route: `${method} ${prefix}${path}`,
      parameters: { ...scopeParameters, ...parameters },
      subject,
    };
  }
}

/**
 * Makes the runner print a message and exit with code 7 when GitHub no longer accepts its version.
 */
const RUNNER_ENV = { ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: '1' } as const;
