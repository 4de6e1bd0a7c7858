import type { Scope } from '../../../core/domain/ciServer.ts';
import { scopeRoute } from './addresses.ts';
import { changedFilesAnswer } from './responses.ts';
import type { GitHubApi, GitHubRequest } from './api.ts';

const PAGE = 100;
/** GitHub Actions itself looks at 300 files (https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#git-diff-comparisons). */
const MAX_PAGES = 10;

/**
 * The files of a pull request. https://docs.github.com/en/rest/pulls/pulls#list-pull-requests-files
 * @returns `undefined`: they are more than {@link MAX_PAGES} pages
 */
export async function changedFiles(
  api: GitHubApi,
  scope: Scope,
  pullRequest: number,
  signal?: AbortSignal,
): Promise<string[] | undefined> {
  const { prefix, parameters } = scopeRoute(scope);
  const paths = new Set<string>();
  for (let page = 1; page <= MAX_PAGES; page++) {
    const request: GitHubRequest = {
      call: 'files',
      route: `GET ${prefix}/pulls/{pull_number}/files`,
      parameters: { ...parameters, pull_number: pullRequest, per_page: PAGE, page },
      about: `${scope.name}, pull request ${pullRequest}`,
    };
    const files = api.parse(changedFilesAnswer, await api.request(request, signal), request);
    for (const { filename, previous_filename: before } of files)
      for (const path of [filename, before]) if (path) paths.add(path);
    if (files.length < PAGE) return [...paths];
  }
  return undefined;
}
