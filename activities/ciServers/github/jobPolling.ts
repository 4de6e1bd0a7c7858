import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import type { CiJob, CiJobList, Scope } from '../../../core/domain/ciServer.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { Clock } from '../clock.ts';
import { SharedSearch } from '../sharedSearch.ts';
import type { RestApi } from './api.ts';
import type { RestApiOptions, RestRequest } from './restRequest.ts';
import { normalizeGitHubRunnerLabels } from './labels.ts';
import { PollBudget } from './pollBudget.ts';
import { jobOf, QueuedJobs } from './queuedJobs.ts';
import { jobAnswer } from './responses.ts';

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

/**
 * Polls the jobs of a credential's scopes within a budget of requests. Lists that are often
 * unchanged are requested with their ETags.
 */
export class JobPolling {
  readonly #api: RestApi;
  readonly #clock: Clock;
  readonly #isApp: boolean;
  readonly #searches: SharedSearch;
  readonly #budgets: { readonly lists: PollBudget; readonly jobs: PollBudget };
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

  constructor(api: RestApi, { clock, credential }: RestApiOptions) {
    this.#api = api;
    this.#clock = clock;
    this.#isApp = credential.type === 'app';
    this.#searches = new SharedSearch(clock, async (scope) => await this.#searchJobs(scope));
    this.#budgets = {
      lists: new PollBudget(LIST_BUDGET, clock),
      jobs: new PollBudget(JOB_BUDGET, clock),
    };
  }

  /**
   * Lists the queued jobs of a scope. Concurrent calls for a scope share one search, which is not
   * aborted for one of them.
   */
  async list(
    scope: Scope,
    labels?: readonly string[],
    signal?: AbortSignal,
    maxAgeMs = 0,
  ): Promise<CiJobList> {
    const offered = labels && new Set(normalizeGitHubRunnerLabels(labels));
    return await this.#searches.list(scope, { offered, maxAgeMs }, signal);
  }

  /**
   * Returns one job, for scopes with too many jobs to list.
   * @returns as `CiServer.getJob`
   */
  async get(
    scope: Scope,
    { id, repository }: { readonly id: string; readonly repository: string },
    signal?: AbortSignal,
  ): Promise<CiJob | 'absent' | undefined> {
    const [owner = '', repo = ''] = repository.split('/');
    const isWithin =
      scope.kind === 'enterprise' ||
      [repository, owner].some((name) => name.toLowerCase() === scope.name.toLowerCase());
    if (!isWithin || !this.#budgets.jobs.left) return undefined;
    const request: RestRequest = {
      call: 'jobs',
      route: 'GET /repos/{owner}/{repo}/actions/jobs/{job_id}',
      parameters: { owner, repo, job_id: id },
      subject: `job ${id} of ${repository}`,
    };
    this.#budgets.jobs.spend();
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
      this.#isApp,
    ).of(scope);
    const { lists } = this.#budgets;
    if (found.complete || found.unsupported === true || lists.left) return found;
    return { ...found, budgetUntil: Math.round(this.#clock.now() + lists.renewsInMs) };
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
    if (!this.#budgets.lists.left) return undefined;
    const answer = await this.#api.request({ ...request, ...omitUndefined({ etag: kept?.etag }) });
    if (kept && answer.status === 304) return kept.value as z.output<T>;
    this.#budgets.lists.spend();
    if (mayBeAbsent && answer.status === 404) return undefined;
    const value = this.#api.parse(schema, answer, request);
    if (answer.etag !== undefined) this.#responseCache.set(key, { etag: answer.etag, value });
    return value;
  }
}
