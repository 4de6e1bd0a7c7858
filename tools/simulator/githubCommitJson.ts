import { API, idOf, userJson, WEB } from './githubJson.ts';
import type { ChangedFile, SimulatedCheckRun, SimulatedStatus } from './types.ts';

/** A commit status as the REST API shows it. */
export function statusJson({
  id,
  repo,
  sha,
  state,
  description,
  target_url,
  context,
  created_at,
}: SimulatedStatus): Record<string, unknown> {
  const creator = userJson('octocat', 'User');
  return {
    url: `${API}/repos/${repo}/statuses/${sha}`,
    avatar_url: creator['avatar_url'],
    id,
    node_id: Buffer.from(`StatusContext${id}`).toString('base64'),
    state,
    description,
    target_url,
    context,
    created_at,
    updated_at: created_at,
    creator,
  };
}

/** A check run as the REST API shows it. */
export function checkRunJson({
  id,
  repo,
  sha,
  name,
  external_id,
  details_url,
  status,
  conclusion,
  started_at,
  completed_at,
  title,
  summary,
}: SimulatedCheckRun): Record<string, unknown> {
  const url = `${API}/repos/${repo}/check-runs/${id}`;
  return {
    id,
    head_sha: sha,
    node_id: Buffer.from(`CheckRun${id}`).toString('base64'),
    external_id,
    url,
    html_url: `${WEB}/${repo}/runs/${id}`,
    details_url,
    status,
    conclusion,
    started_at,
    completed_at,
    output: {
      title,
      summary,
      text: null,
      annotations_count: 0,
      annotations_url: `${url}/annotations`,
    },
    name,
    check_suite: { id: idOf(sha) },
    app: null,
    pull_requests: [],
  };
}

/** A file of a pull request as the REST API shows it. */
export function changedFileJson(
  repo: string,
  { filename, previous_filename }: ChangedFile,
): Record<string, unknown> {
  const path = filename.split('/').map(encodeURIComponent).join('/');
  const sha = idOf(filename).toString(16).padStart(40, '0');
  return {
    sha,
    filename,
    status: previous_filename === undefined ? 'modified' : 'renamed',
    additions: 1,
    deletions: 1,
    changes: 2,
    blob_url: `${WEB}/${repo}/blob/${sha}/${path}`,
    raw_url: `${WEB}/${repo}/raw/${sha}/${path}`,
    contents_url: `${API}/repos/${repo}/contents/${path}?ref=${sha}`,
    patch: '@@ -1 +1 @@',
    ...(previous_filename === undefined ? {} : { previous_filename }),
  };
}
