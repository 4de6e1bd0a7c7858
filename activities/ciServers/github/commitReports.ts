import { defined } from '../../../core/domain/omitUndefined.ts';
import type { CommitReport, ReportTaken } from '../../../core/domain/commitReport.ts';
import { isStanding } from '../../ports.ts';
import { checkRunAnswer, checkRunListAnswer, statusAnswer } from './responses.ts';
import type { GitHubApi, GitHubRequest } from './api.ts';
import type { GitHubCall } from './classify.ts';
import { shownCheckRun, shownStatus } from './shownRun.ts';

const PAGE = 100;
/** GitHub keeps 1,000 check runs of a name. */
const MAX_PAGES = 10;

/** Commit statuses, and for a GitHub App check runs, which nobody else may make. */
export class CommitReports {
  readonly #api: GitHubApi;
  readonly #isApp: boolean;

  constructor(api: GitHubApi, isApp: boolean) {
    this.#api = api;
    this.#isApp = isApp;
  }

  /** The status comes last: each is another line of the commit's history, and is not to be written again because the check run could not be. */
  async report(report: CommitReport, signal?: AbortSignal): Promise<ReportTaken> {
    const withheld = this.#isApp ? await this.#checkRunOrWhyNot(report, signal) : undefined;
    const request = this.#request('status', 'POST /repos/{owner}/{repo}/statuses/{sha}', report, {
      sha: report.commit,
      ...shownStatus(report),
    });
    this.#api.parse(statusAnswer, await this.#api.request(request, signal), request);
    return defined({ withheld });
  }

  /** An App without the right to write check runs reports by statuses alone. */
  async #checkRunOrWhyNot(report: CommitReport, signal?: AbortSignal): Promise<string | undefined> {
    try {
      await this.#checkRun(report, signal);
      return undefined;
    } catch (error) {
      if (!isStanding(error)) throw error;
      return `no check run: ${error.message}`;
    }
  }

  /** Looked for first: an earlier try may have made it, and its answer was lost. */
  async #checkRun(report: CommitReport, signal?: AbortSignal): Promise<void> {
    const shown = shownCheckRun(report);
    const made = await this.#find(report, shown.name, shown.external_id, signal);
    const request =
      made === undefined
        ? this.#request('check_run', 'POST /repos/{owner}/{repo}/check-runs', report, {
            head_sha: report.commit,
            ...shown,
          })
        : this.#request(
            'check_run',
            'PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}',
            report,
            { check_run_id: made, ...shown },
          );
    this.#api.parse(checkRunAnswer, await this.#api.request(request, signal), request);
  }

  async #find(
    report: CommitReport,
    name: string,
    externalId: string,
    signal?: AbortSignal,
  ): Promise<number | undefined> {
    for (let page = 1; page <= MAX_PAGES; page++) {
      const parameters = {
        ref: report.commit,
        check_name: name,
        filter: 'all',
        per_page: PAGE,
        page,
      };
      const request = this.#request(
        'check_run',
        'GET /repos/{owner}/{repo}/commits/{ref}/check-runs',
        report,
        parameters,
      );
      const { check_runs: runs } = this.#api.parse(
        checkRunListAnswer,
        await this.#api.request(request, signal),
        request,
      );
      const found = runs.find((run) => run.external_id === externalId);
      if (found !== undefined || runs.length < PAGE) return found?.id;
    }
    return undefined;
  }

  #request(
    call: GitHubCall,
    route: string,
    { scope, commit }: CommitReport,
    parameters: Record<string, unknown>,
  ): GitHubRequest {
    const [owner, repo] = scope.name.split('/');
    return {
      call,
      route,
      parameters: { owner, repo, ...parameters },
      about: `repository ${scope.name}, commit ${commit}`,
    };
  }
}
