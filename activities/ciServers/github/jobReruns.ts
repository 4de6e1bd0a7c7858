/** Reruns of jobs at GitHub: https://docs.github.com/rest/actions/workflow-runs#re-run-a-job-from-a-workflow-run */
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { scopeHolds, type Scope } from '../../../core/domain/ciServer.ts';
import type { RerunCandidate } from '../../../core/domain/rerun.ts';
import type { RerunJob } from '../../../core/contract/index.ts';
import type { JobReruns } from '../../ports.ts';
import type { Credential } from '../credentials.ts';
import type { GitHubApi, GitHubRequest } from './api.ts';
import { RERUN_PERMISSIONS } from './rerunPermissions.ts';
import {
  annotationListAnswer,
  installationAnswer,
  jobStateAnswer,
  runAnswer,
} from './responses.ts';

/**
 * Messages of the runner and of GitHub on a job whose runner was shut down or lost. They are the
 * only difference from a job that someone cancelled.
 */
const SHUTDOWN_TEXT = /has received a shutdown signal|lost communication with the server/i;

function grants(granted: string | undefined, wanted: 'read' | 'write'): boolean {
  return granted === 'write' || granted === 'admin' || granted === wanted;
}

/** Reruns jobs with one credential. */
export class GitHubJobReruns implements JobReruns {
  readonly #api: GitHubApi;
  readonly #credential: Credential;

  constructor(api: GitHubApi, credential: Credential) {
    this.#api = api;
    this.#credential = credential;
  }

  async getJob(
    scope: Scope,
    job: RerunJob,
    signal?: AbortSignal,
  ): Promise<RerunCandidate | undefined> {
    const request = this.#request(scope, 'GET', '/actions/jobs/{job_id}', job, { job_id: job.id });
    const answer = await this.#api.request(request, signal);
    if (answer.status === 404) return undefined;
    const found = this.#api.parse(jobStateAnswer, answer, request);
    const runId = found.run_id;
    const runRequest = this.#request(scope, 'GET', '/actions/runs/{run_id}', job, {
      run_id: runId,
    });
    const runResponse = await this.#api.request(runRequest, signal);
    if (runResponse.status === 404) return undefined;
    const run = this.#api.parse(runAnswer, runResponse, runRequest);
    const attempt = found.run_attempt ?? 1;
    return {
      runId,
      attempt,
      latestAttempt: run.run_attempt ?? attempt,
      runEnded: run.status === 'completed',
      ...omitUndefined({
        runnerName: found.runner_name || undefined,
        conclusion: found.conclusion ?? undefined,
        completedAt: found.completed_at ?? undefined,
      }),
    };
  }

  async wasInterrupted(scope: Scope, job: RerunJob, signal?: AbortSignal): Promise<boolean> {
    // The check run of a job has the ID of the job.
    const request = this.#request(scope, 'GET', '/check-runs/{check_run_id}/annotations', job, {
      check_run_id: job.id,
      per_page: 100,
    });
    const answer = await this.#api.request(request, signal);
    if (answer.status === 404) return false;
    return this.#api
      .parse(annotationListAnswer, answer, request)
      .some(({ message }) => SHUTDOWN_TEXT.test(message ?? ''));
  }

  async rerun(scope: Scope, job: RerunJob, signal?: AbortSignal): Promise<void> {
    const request = this.#request(scope, 'POST', '/actions/jobs/{job_id}/rerun', job, {
      job_id: job.id,
    });
    const answer = await this.#api.request(request, signal);
    if (answer.status === 404)
      throw this.#api.toError('rejected', request, 'the job is gone, or cannot run again', 404);
  }

  /** GitHub tells the permissions of Apps only. */
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
