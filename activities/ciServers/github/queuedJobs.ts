import pMap from 'p-map';
import type { z } from 'zod';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import {
  installationRepositoriesAnswer,
  jobListAnswer,
  type jobAnswer,
  repositoryListAnswer,
  runListAnswer,
  runnerListAnswer,
} from './responses.ts';
import type { RestRequest } from './restRequest.ts';
import { normalizeGitHubLabels } from './labels.ts';
import type { CiJob, CiJobList, Scope } from '../../../core/domain/ciServer.ts';

/**
 * Requests a list from GitHub. Returns `undefined` for a 404.
 * @throws CiServerError
 */
export type AskList = <T extends z.ZodType>(
  schema: T,
  request: RestRequest,
) => Promise<z.output<T> | undefined>;

const PAGE = 100;
/**
 * Maximum repositories of an organization, those pushed to most recently. Each costs three
 * requests, and a fourth one if {@link MAX_REQUESTS} permits it.
 */
const MAX_REPOSITORIES = 300;
/** Maximum pages of the repositories of an App, which are not sorted by activity. */
const MAX_INSTALLATION_PAGES = 20;
/** GitHub returns at most 1,000 runs per status. */
const MAX_RUN_PAGES = 10;
const MAX_JOB_PAGES = 10;
/** Maximum requests of one check. GitHub permits 900 per minute to one endpoint. */
const MAX_REQUESTS = 800;
const REPOSITORIES_AT_ONCE = 4;
const RUNS_AT_ONCE = 4;

/**
 * Lists the queued and running jobs from the active runs of each repository. GitHub lists neither
 * the runs of an organization nor the jobs of a repository, so a check costs four requests per
 * repository and one per active run. Requests with an unchanged response do not count against the
 * primary rate limit. https://docs.github.com/en/rest/actions/workflow-runs,
 * https://docs.github.com/en/rest/actions/workflow-jobs
 */
export class QueuedJobs {
  readonly #ask: AskList;
  readonly #isApp: boolean;
  #requests = 0;
  #complete = true;

  /**
   * @param isApp - whether the credential is the installation of a GitHub App, which may be limited
   * to some repositories
   */
  constructor(ask: AskList, isApp: boolean) {
    this.#ask = ask;
    this.#isApp = isApp;
  }

  /** Returns the queued and running jobs of a scope. Use each instance for one call. */
  async of(scope: Scope): Promise<CiJobList> {
    // The REST API cannot list the organizations of an enterprise.
    if (scope.kind === 'enterprise') return { jobs: [], complete: false, unsupported: true };
    const repositories =
      scope.kind === 'repository' ? [scope.name] : await this.#repositories(scope.name);
    const seen = new Set<number>();
    const jobs: CiJob[] = [];
    // A run that changes its status meanwhile is in a later list if it was not in an earlier one. A
    // run in which one job waits for an approval may have other jobs that wait for runners. The
    // list of queued runs comes first in all repositories: if the requests run out, it is the one
    // that matters. It is also the last: when a job ends, its run goes back to the queued ones if
    // its other jobs wait for runners. Most of these lists are unchanged, which costs nothing of the
    // rate limit.
    for (const status of ['queued', 'waiting', 'in_progress'])
      jobs.push(...(await this.#jobsOfAll(repositories, status, seen)));
    const complete = this.#complete;
    if (this.#requests + repositories.length <= MAX_REQUESTS)
      jobs.push(...(await this.#jobsOfAll(repositories, 'queued', seen)));
    return { jobs, complete };
  }

  async #jobsOfAll(
    repositories: readonly string[],
    status: string,
    seen: Set<number>,
  ): Promise<CiJob[]> {
    const found = await pMap(
      repositories,
      async (repository) => await this.#jobsOf(repository, status, seen),
      { concurrency: REPOSITORIES_AT_ONCE },
    );
    return found.flat();
  }

  async #repositories(organization: string): Promise<string[]> {
    const found = this.#isApp
      ? await this.#installed(organization)
      : await this.#listed(organization);
    const used = found.filter(({ archived, disabled }) => archived !== true && disabled !== true);
    if (used.length > MAX_REPOSITORIES) this.#complete = false;
    return used.slice(0, MAX_REPOSITORIES).map(({ full_name: name }) => name);
  }

  async #listed(organization: string): Promise<z.output<typeof repositoryListAnswer>> {
    const request: RestRequest = {
      call: 'jobs',
      route: 'GET /orgs/{org}/repos',
      parameters: { org: organization, sort: 'pushed', direction: 'desc' },
      subject: `organization ${organization}`,
    };
    return await this.#pages(request, MAX_REPOSITORIES / PAGE + 1, async (page) => {
      const items = await this.#list(repositoryListAnswer, page);
      // The response has no total count: a page that is not full is the last one.
      return items && { total: items.length < PAGE ? 0 : Number.POSITIVE_INFINITY, items };
    });
  }

  /**
   * Lists the repositories of an App installation. The list of the organization would also contain
   * public repositories that the App is not installed on and cannot read.
   */
  async #installed(organization: string): Promise<z.output<typeof repositoryListAnswer>> {
    const subject = `organization ${organization}`;
    // An installation that lost access to the organization has no repositories of it either. That
    // must not look like an organization without jobs.
    await this.#list(runnerListAnswer, {
      call: 'list',
      route: 'GET /orgs/{org}/actions/runners',
      parameters: { org: organization, per_page: 1 },
      subject,
    });
    const request: RestRequest = {
      call: 'jobs',
      route: 'GET /installation/repositories',
      parameters: {},
      subject,
    };
    const all = await this.#pages(request, MAX_INSTALLATION_PAGES, async (page) => {
      const answer = await this.#list(installationRepositoriesAnswer, page);
      if (answer && answer.repository_selection !== 'all') this.#complete = false;
      return answer && { total: answer.total_count, items: answer.repositories };
    });
    const owner = `${organization}/`.toLowerCase();
    return all
      .filter(({ full_name: name }) => name.toLowerCase().startsWith(owner))
      .toSorted((a, b) => (b.pushed_at ?? '').localeCompare(a.pushed_at ?? ''));
  }

  /**
   * Lists the queued jobs of the runs of a repository with this status.
   * @param seen - IDs of the runs that were already listed
   */
  async #jobsOf(repository: string, status: string, seen: Set<number>): Promise<CiJob[]> {
    const request = this.#inRepository(repository, '/actions/runs', {
      status,
      exclude_pull_requests: true,
    });
    const runs = await this.#pages(request, MAX_RUN_PAGES, async (page) => {
      const answer = await this.#list(runListAnswer, page);
      return answer && { total: answer.total_count, items: answer.workflow_runs };
    });
    const unseen = new Set(runs.map(({ id }) => id).filter((id) => !seen.has(id)));
    for (const id of unseen) seen.add(id);
    const jobs = await pMap(unseen, async (run) => await this.#jobsOfRun(repository, run), {
      concurrency: RUNS_AT_ONCE,
    });
    return jobs.flat();
  }

  async #jobsOfRun(repository: string, run: number): Promise<CiJob[]> {
    const request = this.#inRepository(repository, '/actions/runs/{run_id}/jobs', {
      run_id: run,
      filter: 'latest',
    });
    const jobs = await this.#pages(request, MAX_JOB_PAGES, async (page) => {
      const answer = await this.#list(jobListAnswer, page);
      return answer && { total: answer.total_count, items: answer.jobs };
    });
    return jobs.flatMap((job) => jobOf(job, repository) ?? []);
  }

  async #pages<T>(
    request: RestRequest,
    maxPages: number,
    ask: (page: RestRequest) => Promise<{ total: number; items: T[] } | undefined>,
  ): Promise<T[]> {
    const all: T[] = [];
    let before = 0;
    for (let page = 1; page <= maxPages; page++) {
      const answer = await ask({
        ...request,
        parameters: { ...request.parameters, per_page: PAGE, page },
      });
      all.push(...(answer?.items ?? []));
      // A run that left the list between two pages has moved others up to a page that was already
      // read.
      if (answer !== undefined && Number.isFinite(before) && answer.total < before)
        this.#complete = false;
      before = answer?.total ?? 0;
      if (answer === undefined || answer.items.length === 0 || page * PAGE >= answer.total)
        return all;
    }
    this.#complete = false;
    return all;
  }

  /**
   * Requests one page. A 404 within an organization (a repository that was just deleted, or that
   * the credential cannot read) only makes the result incomplete.
   */
  async #list<T extends z.ZodType>(
    schema: T,
    request: RestRequest,
  ): Promise<z.output<T> | undefined> {
    if (this.#requests++ >= MAX_REQUESTS) {
      this.#complete = false;
      return undefined;
    }
    const answer = await this.#ask(schema, request);
    if (answer === undefined) this.#complete = false;
    return answer;
  }

  #inRepository(
    repository: string,
    path: string,
    parameters: Record<string, unknown>,
  ): RestRequest {
    const [owner, repo] = repository.split('/');
    return {
      call: 'jobs',
      route: `GET /repos/{owner}/{repo}${path}`,
      parameters: { owner, repo, ...parameters },
      subject: `repository ${repository}`,
    };
  }
}

/**
 * Converts a job of GitHub.
 * @returns `undefined` if the job is neither queued nor running
 */
export function jobOf(job: z.output<typeof jobAnswer>, repository: string): CiJob | undefined {
  const { id, status, labels } = job;
  if (status !== 'queued' && status !== 'in_progress') return undefined;
  const startedAt = status === 'in_progress' ? (job.started_at ?? undefined) : undefined;
  const runId = job.run_id ?? undefined;
  const optional = omitUndefined({ runId, startedAt, runnerName: job.runner_name || undefined });
  return {
    id,
    runAttempt: job.run_attempt ?? 1,
    repository,
    labels: normalizeGitHubLabels(labels),
    status,
    queuedAt: job.created_at ?? job.started_at ?? 0,
    ...optional,
  };
}
