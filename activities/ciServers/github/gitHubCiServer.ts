import type { CiRunner, CiServer, Registration } from '../../ports/ciServer.ts';
import type { CiServerError } from '../../ports/ciServerError.ts';
import { webUrlOf } from './addresses.ts';
import { deprecationAnswer, runnerAnswer, runnerListAnswer } from './responses.ts';
import { RestApi } from './api.ts';
import type { RestApiOptions } from './restRequest.ts';
import { WebhookRedelivery } from './deliveries.ts';
import { GitHubJobReruns } from './jobReruns.ts';
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
import { JobPolling } from './jobPolling.ts';
import { RegistrationTokens } from './registrationTokens.ts';
import { RunnerRegistrations } from './runnerRegistrations.ts';
import { scopeRequest, requestInScope } from './scopeRequests.ts';

const PAGE_SIZE = 100;
/**
 * Maximum pages of a list of runners. A group may contain at most 10,000 runners, so a longer list
 * is an error.
 */
const MAX_PAGES = 200;
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
  readonly #groups: RunnerGroups;
  readonly #jobs: JobPolling;
  readonly #registrations: RunnerRegistrations;
  readonly reruns?: GitHubJobReruns;
  readonly redeliverFailed?: NonNullable<CiServer['redeliverFailed']>;
  readonly scaleSets: GitHubScaleSets;
  readonly #tenant: Tenant;

  constructor(options: RestApiOptions) {
    const { credential, clock } = options;
    const api = new RestApi(options);
    this.#api = api;
    this.#jobs = new JobPolling(api, options);
    const groups = new RunnerGroups(api, clock);
    this.#groups = groups;
    const webUrl = credential.webUrl ?? webUrlOf(credential.apiUrl);
    const tokens = new RegistrationTokens(api, clock);
    this.#tenant = new Tenant(options, api, webUrl, (scope) => tokens.of(scope));
    this.scaleSets = new GitHubScaleSets(
      this.#tenant,
      async (scope, group, signal) => await groups.resolveId(scope, group, signal),
    );
    this.#registrations = new RunnerRegistrations({
      api,
      groups,
      tokens,
      scaleSets: this.scaleSets,
      webUrl,
      allowPublicRepositories: credential.allowPublicRepositories,
    });
    if (credential.reruns) this.reruns = new GitHubJobReruns(api, credential);
    // GitHub supports redelivery for Apps only.
    if (credential.type !== 'app') return;
    const deliveries = new WebhookRedelivery(api, clock);
    this.redeliverFailed = async (limits, signal) =>
      await deliveries.redeliverFailed(limits, signal);
  }

  isReachable(): boolean {
    return this.#api.isReachable();
  }

  async register(request: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    return await this.#registrations.register(request, signal);
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
    const request = scopeRequest('remove', 'DELETE', scope, '/actions/runners/{runner_id}', {
      runner_id: this.#idOf(scope, runnerId),
    });
    const answer = await requestInScope(this.#api, request, scope, signal);
    if (answer.status === 204) return 'removed';
    if (answer.status === 404) return 'absent';
    throw this.#api.toError(
      'unavailable',
      request,
      'unexpected response to a removal, must be 204; check for a proxy or a login page in between',
      answer.status,
    );
  }

  async listQueuedJobs(
    scope: Scope,
    labels?: readonly string[],
    signal?: AbortSignal,
    maxAgeMs = 0,
  ): Promise<CiJobList> {
    return await this.#jobs.list(scope, labels, signal, maxAgeMs);
  }

  async getJob(
    scope: Scope,
    job: { readonly id: string; readonly repository: string },
    signal?: AbortSignal,
  ): Promise<CiJob | 'absent' | undefined> {
    return await this.#jobs.get(scope, job, signal);
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await Promise.all([this.#api.close(), this.#tenant.close()]);
  }

  async publicGroups(scope: Scope, signal?: AbortSignal): Promise<string[]> {
    return scope.kind === 'repository' ? [] : await this.#groups.publicNames(scope, signal);
  }

  async runnerGroupId(scope: Scope, name: string, signal?: AbortSignal): Promise<string> {
    return String(await this.#groups.resolveId(scope, { name }, signal));
  }

  async #findById(scope: Scope, id: string, signal?: AbortSignal): Promise<CiRunner | undefined> {
    const request = scopeRequest('runner', 'GET', scope, '/actions/runners/{runner_id}', {
      runner_id: this.#idOf(scope, id),
    });
    const answer = await requestInScope(this.#api, request, scope, signal);
    return answer.status === 404 ? undefined : this.#api.parse(runnerAnswer, answer, request);
  }

  async listRunners(scope: Scope, signal?: AbortSignal): Promise<CiRunner[]> {
    const found = new Map<string, CiRunner>();
    let rows = 0;
    for (let page = 1; page <= MAX_PAGES; page++) {
      const request = scopeRequest('list', 'GET', scope, '/actions/runners', {
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
    const request = scopeRequest(
      'runner',
      'GET',
      scope,
      '/actions/runners/deprecations/{version}',
      {
        version,
      },
    );
    // Enterprise Server has no such list yet.
    const answer = await requestInScope(this.#api, request, scope, signal);
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
      const request = scopeRequest('list', 'GET', scope, '/actions/runners', {
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
      scopeRequest('list', 'GET', scope, '/actions/runners', {}),
      'the list of runners does not end',
    );
  }

  /**
   * Validates an ID. GitHub returns 404 for anything that is not one of its IDs, which would look
   * like proof that the runner is gone.
   */
  #idOf(scope: Scope, id: string): string {
    if (/^[1-9]\d*$/.test(id)) return id;
    const list = scopeRequest('list', 'GET', scope, '/actions/runners', {});
    throw this.#api.toError('rejected', list, `runner id: must be a number, got "${id}"`);
  }
}
