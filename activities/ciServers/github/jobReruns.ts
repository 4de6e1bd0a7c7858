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
import { CiServerError } from '../../ports/ciServerError.ts';
import type { JobReruns } from '../../ports/jobReruns.ts';
import type { Credential } from '../credentials.ts';
import type { RestApi } from './api.ts';
import type { RestRequest } from './restRequest.ts';
import { RERUN_PERMISSIONS } from './rerunPermissions.ts';
import {
  annotationListAnswer,
  appAnswer,
  installationAnswer,
  jobStateAnswer,
  jobStateListAnswer,
  runAnswer,
  userAnswer,
} from './responses.ts';

/**
 * Messages on a job that did not end by itself: of GitHub for a job that someone cancelled, of the
 * runner for its shutdown, and of GitHub for a runner that did not answer any more. The first that
 * is found counts. A step can write such messages too, but only about its own job.
 */
const EVIDENCE: readonly (readonly ['cancelled' | 'shutdown' | 'lost', RegExp])[] = [
  ['cancelled', /\brun was cancell?ed by\b/i],
  ['shutdown', /has received a shutdown signal/i],
  ['lost', /lost communication with the server/i],
];

/** Name of the user or App that cancelled a run: `The run was canceled by @NAME.` */
const CANCELLED_BY = /\brun was cancell?ed by @([^\s@]+?)\.?(?:\s|$)/gi;

const PAGE = 100;
/** Maximum pages of a list of jobs. A matrix has at most 256 jobs. */
const MAX_PAGES = 10;
/** Maximum number of responses cached with their ETags. */
const MAX_CACHED = 2_000;

type JobState = z.output<typeof jobStateAnswer>;

/** Reruns jobs with one credential. */
export class GitHubJobReruns implements JobReruns {
  readonly #api: RestApi;
  readonly #credential: Credential;
  /** Unchanged responses (304) do not count against the primary rate limit. */
  readonly #responses = new LRUCache<string, { readonly etag: string; readonly value: unknown }>({
    max: MAX_CACHED,
  });

  /** Name of the user or App of the credential. */
  #ownName: string | undefined;

  constructor(api: RestApi, credential: Credential) {
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
        : (await this.#latestJobs(scope, job, runId, signal)).jobs.find((each) =>
            isRerunOf(each, found),
          );
    return {
      ...candidate,
      latestAttempt,
      runEnded: run.status === 'completed',
      ...(later === undefined ? {} : { rerunAttempt: later.run_attempt ?? latestAttempt }),
    };
  }

  /** Returns the jobs of the latest attempt of a workflow run, and whether they are all. */
  async #latestJobs(
    scope: Scope,
    job: RerunJob,
    runId: string,
    signal?: AbortSignal,
  ): Promise<{ readonly jobs: JobState[]; readonly complete: boolean }> {
    const jobs: JobState[] = [];
    let total = 0;
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
      total = list.total_count;
      if (list.jobs.length < PAGE) break;
    }
    return { jobs, complete: jobs.length === total };
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
    const messages = annotations.map(({ message }) => message ?? '');
    const found = EVIDENCE.find(([, text]) => messages.some((message) => text.test(message)));
    if (found?.[0] !== 'cancelled') return found?.[0] ?? 'none';
    const names = messages.flatMap((message) =>
      [...message.matchAll(CANCELLED_BY)].map(([, name = '']) => name.toLowerCase()),
    );
    const own = (this.#ownName ??= await this.#readOwnName(job, signal)).toLowerCase();
    const isOwn = names.length > 0 && names.every((name) => name === own);
    return isOwn ? 'cancelled_by_credential' : 'cancelled';
  }

  /** Returns the name with which GitHub shows what the credential does. */
  async #readOwnName({ id, repository }: RerunJob, signal?: AbortSignal): Promise<string> {
    const request = (route: string): RestRequest => ({
      call: 'rerun',
      route,
      parameters: {},
      subject: `job ${id} of ${repository}`,
    });
    if (this.#credential.type === 'app') {
      const app = request('GET /app');
      const answer = await this.#api.requestAsApp(app, signal);
      return `${this.#api.parse(appAnswer, answer, app).slug}[bot]`;
    }
    const user = request('GET /user');
    return this.#api.parse(userAnswer, await this.#api.request(user, signal), user).login;
  }

  async isOnlyActiveJob(
    scope: Scope,
    job: RerunJob,
    { runId, attempt }: Pick<RerunCandidate, 'runId' | 'attempt'>,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { jobs, complete } = await this.#latestJobs(scope, job, runId, signal);
    const active = jobs.filter(({ status }) => status !== 'completed');
    const [only] = active;
    return (
      complete &&
      active.length === 1 &&
      only?.id === job.id &&
      only.status === 'in_progress' &&
      (only.run_attempt ?? 1) === attempt
    );
  }

  async forceCancel(
    scope: Scope,
    job: RerunJob,
    { runId }: Pick<RerunCandidate, 'runId'>,
    signal?: AbortSignal,
  ): Promise<void> {
    const path = '/actions/runs/{run_id}/force-cancel';
    const request = this.#request(scope, 'POST', path, job, { run_id: runId });
    try {
      const { status } = await this.#api.request(request, signal);
      if (status === 404)
        throw this.#api.toError('rejected', request, 'the workflow run does not exist', status);
    } catch (error) {
      // The run has ended.
      if (!(error instanceof CiServerError) || error.status !== 409) throw error;
    }
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
    const request: RestRequest = {
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
    request: RestRequest,
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
  ): RestRequest {
    const [owner = '', repo = ''] = repository.split('/');
    const request: RestRequest = {
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
