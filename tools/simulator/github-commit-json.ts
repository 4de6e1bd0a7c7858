import { API, idOf, userJson, WEB } from './github-json.ts';
import type { SimulatedCheckRun, SimulatedStatus } from './types.ts';

/** A commit status as the REST API shows it. */
export function statusJson({ id, repo, sha, state, description, target_url, context, created_at }: SimulatedStatus): Record<string, unknown> {
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
export function checkRunJson({ id, repo, sha, name, external_id, details_url, status, conclusion, started_at, completed_at, title, summary }: SimulatedCheckRun): Record<string, unknown> {
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
    output: { title, summary, text: null, annotations_count: 0, annotations_url: `${url}/annotations` },
    name,
    check_suite: { id: idOf(sha) },
    app: null,
    pull_requests: [],
  };
}
