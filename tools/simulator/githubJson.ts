import type { Registration } from './registrations.ts';
import type { SimulatedJob } from './types.ts';

/** Base URL in responses: GitHub's own, as in its examples. Clients do not follow these links. */
const API = 'https://api.github.com';
const WEB = 'https://github.com';

/** A stable small number for a name. */
export function idOf(name: string): number {
  let hash = 7;
  for (const char of name.toLowerCase()) hash = (hash * 31 + char.charCodeAt(0)) % 900_000_007;
  return hash + 1;
}

/** A runner as the REST API lists it. */
export function runnerJson(
  registration: Registration,
  online: boolean,
  busy: boolean,
): Record<string, unknown> {
  return {
    id: registration.id,
    name: registration.name,
    os: registration.os,
    status: online ? 'online' : 'offline',
    busy,
    labels: registration.labels,
    runner_group_id: registration.groupId,
    ephemeral: registration.ephemeral,
    ...(registration.version === null ? {} : { version: registration.version }),
  };
}

export function userJson(
  login: string,
  type: 'User' | 'Organization' = 'Organization',
): Record<string, unknown> {
  const url = `${API}/users/${login}`;
  return {
    login,
    id: idOf(login),
    node_id: Buffer.from(`User${idOf(login)}`).toString('base64'),
    avatar_url: `https://avatars.githubusercontent.com/u/${idOf(login)}?v=4`,
    gravatar_id: '',
    url,
    html_url: `${WEB}/${login}`,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type,
    site_admin: false,
  };
}

const REPOSITORY_URLS: Record<string, string> = {
  forks: 'forks',
  keys: 'keys{/key_id}',
  collaborators: 'collaborators{/collaborator}',
  teams: 'teams',
  hooks: 'hooks',
  issue_events: 'issues/events{/number}',
  events: 'events',
  assignees: 'assignees{/user}',
  branches: 'branches{/branch}',
  tags: 'tags',
  blobs: 'git/blobs{/sha}',
  git_tags: 'git/tags{/sha}',
  git_refs: 'git/refs{/sha}',
  trees: 'git/trees{/sha}',
  statuses: 'statuses/{sha}',
  languages: 'languages',
  stargazers: 'stargazers',
  contributors: 'contributors',
  subscribers: 'subscribers',
  subscription: 'subscription',
  commits: 'commits{/sha}',
  git_commits: 'git/commits{/sha}',
  comments: 'comments{/number}',
  issue_comment: 'issues/comments{/number}',
  contents: 'contents/{+path}',
  compare: 'compare/{base}...{head}',
  merges: 'merges',
  archive: '{archive_format}{/ref}',
  downloads: 'downloads',
  issues: 'issues{/number}',
  pulls: 'pulls{/number}',
  milestones: 'milestones{/number}',
  notifications: 'notifications{?since,all,participating}',
  labels: 'labels{/name}',
  releases: 'releases{/id}',
  deployments: 'deployments',
};

export function repositoryJson(fullName: string): Record<string, unknown> {
  const [owner = '', name = ''] = fullName.split('/');
  const url = `${API}/repos/${fullName}`;
  return {
    id: idOf(fullName),
    node_id: Buffer.from(`Repository${idOf(fullName)}`).toString('base64'),
    name,
    full_name: fullName,
    private: true,
    owner: userJson(owner),
    html_url: `${WEB}/${fullName}`,
    description: null,
    fork: false,
    url,
    ...Object.fromEntries(
      Object.entries(REPOSITORY_URLS).map(([key, path]) => [`${key}_url`, `${url}/${path}`]),
    ),
    created_at: '2024-01-01T00:00:00Z',
    updated_at: '2024-01-01T00:00:00Z',
    pushed_at: '2024-01-01T00:00:00Z',
    git_url: `git://github.com/${fullName}.git`,
    ssh_url: `git@github.com:${fullName}.git`,
    clone_url: `${WEB}/${fullName}.git`,
    svn_url: `${WEB}/${fullName}`,
    homepage: null,
    size: 1,
    stargazers_count: 0,
    watchers_count: 0,
    language: null,
    has_issues: true,
    has_projects: true,
    has_downloads: true,
    has_wiki: true,
    has_pages: false,
    has_discussions: false,
    forks_count: 0,
    mirror_url: null,
    archived: false,
    disabled: false,
    open_issues_count: 0,
    license: null,
    allow_forking: false,
    is_template: false,
    web_commit_signoff_required: false,
    topics: [],
    visibility: 'private',
    forks: 0,
    open_issues: 0,
    watchers: 0,
    default_branch: 'main',
    custom_properties: {},
  };
}

const HEAD_SHA = '0f9c1d3e5b7a9c1d3e5b7a9c1d3e5b7a9c1d3e5b';

const seconds = (iso: string): string => `${iso.slice(0, 19)}Z`;

/** A job as the REST API shows it and as `workflow_job` events carry it. */
export function jobJson(job: SimulatedJob): Record<string, unknown> {
  const url = `${API}/repos/${job.repo}`;
  const status = job.status === 'assigned' ? 'queued' : job.status;
  const assigned = status !== 'queued' && job.runner_id !== null;
  return {
    id: job.id,
    run_id: job.run_id,
    workflow_name: job.workflow_name,
    head_branch: 'main',
    run_url: `${url}/actions/runs/${job.run_id}`,
    run_attempt: job.run_attempt,
    node_id: Buffer.from(`CheckRun${job.id}`).toString('base64'),
    head_sha: HEAD_SHA,
    url: `${url}/actions/jobs/${job.id}`,
    html_url: `${WEB}/${job.repo}/actions/runs/${job.run_id}/job/${job.id}`,
    status,
    conclusion: job.conclusion,
    created_at: seconds(job.created_at),
    started_at: seconds(job.started_at ?? job.created_at),
    completed_at: job.completed_at === null ? null : seconds(job.completed_at),
    name: job.name,
    steps: status === 'queued' || job.started_at === null ? [] : [stepJson(job)],
    check_run_url: `${url}/check-runs/${job.id}`,
    labels: job.labels,
    runner_id: assigned ? job.runner_id : null,
    runner_name: assigned ? job.runner_name : null,
    runner_group_id: assigned ? job.runner_group_id : null,
    runner_group_name: assigned ? job.runner_group_name : null,
  };
}

function stepJson(job: SimulatedJob): Record<string, unknown> {
  return {
    name: `Run ${job.command.split('\n')[0]}`,
    status: job.status === 'completed' ? 'completed' : 'in_progress',
    conclusion: job.conclusion,
    number: 1,
    started_at: job.started_at,
    completed_at: job.completed_at,
  };
}

/** Annotations of a job's check run: the reason if it did not end by itself. */
export function annotationsJson(job: SimulatedJob): Record<string, unknown>[] {
  if (job.annotation === undefined) return [];
  return [
    {
      path: '.github',
      blob_href: `${WEB}/${job.repo}/blob/${HEAD_SHA}/.github`,
      start_line: 1,
      start_column: null,
      end_line: 1,
      end_column: null,
      annotation_level: 'failure',
      title: '',
      message: job.annotation,
      raw_details: '',
    },
  ];
}

/** Returns a workflow run from its jobs in all attempts. */
export function runJson(attempts: readonly SimulatedJob[]): Record<string, unknown> | undefined {
  const attempt = Math.max(...attempts.map((job) => job.run_attempt));
  const latest = attempts.filter((job) => job.run_attempt === attempt);
  const [first] = latest;
  if (!first) return undefined;
  const url = `${API}/repos/${first.repo}/actions`;
  const run = `${url}/runs/${first.run_id}`;
  // The jobs of the latest attempt, and those of earlier attempts that did not run again.
  const jobs = [...new Map(attempts.map((job) => [job.name, job])).values()];
  const statuses = jobs.map((job) => job.status);
  const waits = statuses.every((one) => one === 'queued' || one === 'assigned');
  const ended = statuses.every((one) => one === 'completed');
  const statusOfOpenRun = waits ? 'queued' : 'in_progress';
  const status = ended ? 'completed' : statusOfOpenRun;
  const conclusion = jobs.find((job) => job.conclusion !== 'success')?.conclusion ?? 'success';
  return {
    id: first.run_id,
    name: first.workflow_name,
    node_id: Buffer.from(`WorkflowRun${first.run_id}`).toString('base64'),
    head_branch: 'main',
    head_sha: HEAD_SHA,
    path: '.github/workflows/ci.yml@main',
    display_title: first.workflow_name,
    run_number: first.run_id,
    run_attempt: first.run_attempt,
    event: 'push',
    status,
    conclusion: status === 'completed' ? conclusion : null,
    workflow_id: idOf(first.workflow_name),
    url: run,
    html_url: `${WEB}/${first.repo}/actions/runs/${first.run_id}`,
    pull_requests: [],
    created_at: seconds(first.created_at),
    updated_at: seconds(first.completed_at ?? first.started_at ?? first.created_at),
    jobs_url: `${run}/jobs`,
    logs_url: `${run}/logs`,
    check_suite_url: `${API}/repos/${first.repo}/check-suites/${first.run_id}`,
    artifacts_url: `${run}/artifacts`,
    cancel_url: `${run}/cancel`,
    rerun_url: `${run}/rerun`,
    workflow_url: `${url}/workflows/${idOf(first.workflow_name)}`,
    head_commit: null,
    repository: repositoryJson(first.repo),
    head_repository: repositoryJson(first.repo),
  };
}
