/**
 * Reruns of jobs at GitHub:
 * https://docs.github.com/rest/actions/workflow-runs#re-run-a-job-from-a-workflow-run
 */
import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { scopeHolds, type Scope } from '../../../core/domain/ciServer.ts';
import type { EndEvidence, RerunCandidate } from '../../../core/domain/rerun.ts';
import type { RerunJob } from '../../../core/contract/index.ts';
import type { JobReruns } from '../../ports.ts';
import type { Credential } from '../credentials.ts';
import type { GitHubApi, GitHubRequest } from './api.ts';
import { RERUN_PERMISSIONS } from './rerunPermissions.ts';
import {
  annotationListAnswer,
  installationAnswer,
  jobStateAnswer,
  jobStateListAnswer,
  runAnswer,
} from './responses.ts';

/**
 * Messages on a job that did not end by itself: of GitHub for a job that someone cancelled, of the
 * runner for its shutdown, and of GitHub for a runner that did not answer any more. The first that
 * is found counts. A step can write such messages too, but only about its own job.
 */
const EVIDENCE: readonly (readonly [Exclude<EndEvidence, 'none'>, RegExp])[] = [
  ['cancelled', /\brun was cancell?ed by\b/i],
  ['shutdown', /has received a shutdown signal/i],
  ['lost', /lost communication with the server/i],
];

const PAGE = 100;
/** Maximum pages of a list of jobs. A matrix has at most 256 jobs. */
const MAX_PAGES = 10;
/** Maximum number of responses cached with their ETags. */
const MAX_CACHED = 2_000;

type JobState = z.output<typeof jobStateAnswer>;

/** Reruns jobs with one credential. */
export class GitHubJobReruns implements JobReruns {
  readonly #api: GitHubApi;
  readonly #credential: Credential;
  /** Unchanged responses (304) do not count against the primary rate limit. */
  readonly #responses = new LRUCache<string, { readonly etag: string; readonly value: unknown }>({
    max: MAX_CACHED,
  });

  constructor(api: GitHubApi, credential: Credential) {
    this.#api = api;
    this.#credential = credential;
  }

  async getJob(
    scope: Scope,
    job: RerunJob,
    signal?: AbortSignal,
  ): Promise<RerunCandidate | undefined> {
    const path = '/actions/jobs/{job_id}';
    const request = this.#request(scope, 'GET', path, job, { job_id: job.id });
    const found = await this.#get(jobStateAnswer, request, signal);
    if (found === undefined) return undefined;
    const candidate = toCandidate(found);
    return candidate.conclusion === undefined
      ? candidate
      : await this.#withRun(scope, job, found, candidate, signal);
  }

  /** Adds the state of the workflow run, and of the same job in its latest attempt. */
  async #withRun(
    scope: Scope,
    job: RerunJob,
    found: JobState,
    candidate: RerunCandidate,
    signal?: AbortSignal,
  ): Promise<RerunCandidate | undefined> {
    const { runId, attempt } = candidate;
    const request = this.#request(scope, 'GET', '/actions/runs/{run_id}', job, { run_id: runId });
    const run = await this.#get(runAnswer, request, signal);
    if (run === undefined) return undefined;
    const latestAttempt = run.run_attempt ?? attempt;
    const later =
      latestAttempt === attempt
        ? undefined
        : (await this.#latestJobs(scope, job, runId, signal)).find((each) =>
            isRerunOf(each, found),
          );
    return {
      ...candidate,
      latestAttempt,
      runEnded: run.status === 'completed',
      ...(later === undefined ? {} : { rerunAttempt: later.run_attempt ?? latestAttempt }),
    };
  }

  /** Returns the jobs of the latest attempt of a workflow run. */
  async #latestJobs(
    scope: Scope,
    job: RerunJob,
    runId: string,
    signal?: AbortSignal,
  ): Promise<JobState[]> {
    const jobs: JobState[] = [];
    for (let page = 1; page <= MAX_PAGES; page++) {
      const request = this.#request(scope, 'GET', '/actions/runs/{run_id}/jobs', job, {
        run_id: runId,
        filter: 'latest',
        per_page: PAGE,
        page,
      });
      const answer = await this.#api.request(request, signal);
      const list = this.#api.parse(jobStateListAnswer, answer, request);
      jobs.push(...list.jobs);
      if (list.jobs.length < PAGE) break;
    }
    return jobs;
  }

  async endEvidence(scope: Scope, job: RerunJob, signal?: AbortSignal): Promise<EndEvidence> {
    // The check run of a job has the ID of the job.
    const request = this.#request(scope, 'GET', '/check-runs/{check_run_id}/annotations', job, {
      check_run_id: job.id,
      per_page: PAGE,
    });
    const answer = await this.#api.request(request, signal);
    if (answer.status === 404) return 'none';
    const annotations = this.#api.parse(annotationListAnswer, answer, request);
    const found = EVIDENCE.find(([, text]) =>
      annotations.some(({ message }) => text.test(message ?? '')),
    );
    return found?.[0] ?? 'none';
  }

  async rerun(scope: Scope, job: RerunJob, signal?: AbortSignal): Promise<void> {
    const request = this.#request(scope, 'POST', '/actions/jobs/{job_id}/rerun', job, {
      job_id: job.id,
    });
    const answer = await this.#api.request(request, signal);
    if (answer.status === 404)
      throw this.#api.toError(
        'rejected',
        request,
        'the job does not exist, or cannot run again',
        404,
      );
  }

  /** Returns the missing permissions. GitHub reports the permissions of Apps only. */
  async missingPermissions(signal?: AbortSignal): Promise<readonly string[]> {
    if (this.#credential.type !== 'app') return [];
    const { installationId } = this.#credential;
    const request: GitHubRequest = {
      call: 'installation_token',
      route: 'GET /app/installations/{installation_id}',
      parameters: { installation_id: installationId },
      subject: `installation ${installationId}`,
    };
    const answer = await this.#api.requestAsApp(request, signal);
    const { permissions } = this.#api.parse(installationAnswer, answer, request);
    return Object.entries(RERUN_PERMISSIONS)
      .filter(([name, access]) => !grants(permissions[name], access))
      .map(([name, access]) => `${name}: ${access}`);
  }

  /**
   * Requests an object with its cached ETag.
   * @returns `undefined` for a 404
   */
  async #get<T extends z.ZodType>(
    schema: T,
    request: GitHubRequest,
    signal?: AbortSignal,
  ): Promise<z.output<T> | undefined> {
    const key = `${request.route} ${JSON.stringify(request.parameters)}`;
    const cached = this.#responses.get(key);
    const answer = await this.#api.request(
      { ...request, ...omitUndefined({ etag: cached?.etag }) },
      signal,
    );
    if (cached !== undefined && answer.status === 304) return cached.value as z.output<T>;
    if (answer.status === 404) return undefined;
    const value = this.#api.parse(schema, answer, request);
    if (answer.etag !== undefined) this.#responses.set(key, { etag: answer.etag, value });
    return value;
  }

  #request(
    scope: Scope,
    method: 'GET' | 'POST',
    path: string,
    { id, repository }: RerunJob,
    parameters: Record<string, unknown>,
  ): GitHubRequest {
    const [owner = '', repo = ''] = repository.split('/');
    const request: GitHubRequest = {
      call: 'rerun',
      route: `${method} /repos/{owner}/{repo}${path}`,
      parameters: { owner, repo, ...parameters },
      subject: `job ${id} of ${repository}`,
    };
    if (scopeHolds(scope, repository)) return request;
    throw this.#api.toError('rejected', request, `the repository is not in ${scope.name}`);
  }
}

function toCandidate(job: JobState): RerunCandidate {
  return {
    runId: job.run_id,
    attempt: job.run_attempt ?? 1,
    runEnded: false,
    ...omitUndefined({
      runnerName: job.runner_name || undefined,
      conclusion: job.conclusion ?? undefined,
      completedAt: job.completed_at ?? undefined,
    }),
  };
}

/**
 * Whether a job of a later attempt is a rerun of this one, which has ended. An attempt may also list
 * the jobs that did not run again, with the times of their earlier run.
 */
function isRerunOf(later: JobState, { id, name, completed_at: endedAt }: JobState): boolean {
  const isSame = later.name === name && later.id !== id;
  const startedAt = later.started_at ?? later.created_at;
  return isSame && (later.conclusion === null || (startedAt ?? 0) >= (endedAt ?? 0));
}

function grants(granted: string | undefined, wanted: 'read' | 'write'): boolean {
  return granted === 'write' || granted === 'admin' || granted === wanted;
}
