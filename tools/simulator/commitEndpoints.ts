import type { FastifyInstance } from 'fastify';
import type { Answer } from './responses.ts';
import * as answers from './responses.ts';
import { changedFileJson, checkRunJson, statusJson } from './githubCommitJson.ts';
import { paginate } from './pages.ts';
import { serve, type Call, type Endpoint } from './rest.ts';
import type { SimulatedCheckRun } from './types.ts';
import type { World } from './world.ts';

const scope = ({ owner, repo }: Record<string, string>): string => `repos/${owner}/${repo}`;
const repoOf = ({ params }: Call): string => `${params['owner']}/${params['repo']}`;

const STATES = ['error', 'failure', 'pending', 'success'];
const CHECK_STATUSES = ['queued', 'in_progress', 'completed'];
const CONCLUSIONS = [
  'action_required',
  'cancelled',
  'failure',
  'neutral',
  'success',
  'skipped',
  'timed_out',
];
/** Of statuses of a commit with the same context. */
const MAX_STATUSES = 1_000;
const MAX_SUMMARY = 65_535;

/** Commit statuses, check runs and files of pull requests: https://docs.github.com/rest/commits/statuses, https://docs.github.com/rest/checks/runs, https://docs.github.com/rest/pulls/pulls */
export function serveCommitEndpoints(server: FastifyInstance, world: World): void {
  const endpoint = (
    method: Endpoint['method'],
    path: string,
    docs: string,
    answer: (call: Call) => Answer,
  ): void =>
    serve(server, world, {
      method,
      path: `/repos/{owner}/{repo}${path}`,
      scope,
      docs: `${answers.DOCS}/${docs}`,
      answer,
    });

  endpoint('POST', '/statuses/{sha}', 'commits/statuses#create-a-commit-status', (call) =>
    createStatus(world, call),
  );
  endpoint(
    'GET',
    '/commits/{ref}/statuses',
    'commits/statuses#list-commit-statuses-for-a-reference',
    (call) => {
      const { items, headers } = paginate(
        world.commits.statuses(repoOf(call), call.params['ref'] ?? '').toReversed(),
        call,
      );
      return { status: 200, body: items.map(statusJson), headers };
    },
  );
  endpoint('GET', '/pulls/{pull_number}/files', 'pulls/pulls#list-pull-requests-files', (call) => {
    const files = world.commits.changedFiles(repoOf(call), Number(call.params['pull_number']));
    if (files === undefined) return answers.notFound(call.docs);
    const { items, headers } = paginate(files, call);
    return { status: 200, body: items.map((file) => changedFileJson(repoOf(call), file)), headers };
  });
  endpoint('POST', '/check-runs', 'checks/runs#create-a-check-run', (call) =>
    createCheckRun(world, call),
  );
  endpoint('PATCH', '/check-runs/{check_run_id}', 'checks/runs#update-a-check-run', (call) => {
    const found = world.commits.checkRun(repoOf(call), Number(call.params['check_run_id']));
    return found === undefined
      ? answers.notFound(call.docs)
      : (whyNoCheckRun(call) ?? {
          status: 200,
          body: checkRunJson(Object.assign(found, changes(call))),
        });
  });
  endpoint(
    'GET',
    '/commits/{ref}/check-runs',
    'checks/runs#list-check-runs-for-a-git-reference',
    (call) => {
      const named = world.commits
        .checkRuns(repoOf(call), call.params['ref'] ?? '')
        .filter(
          ({ name }) => call.query['check_name'] === undefined || name === call.query['check_name'],
        );
      // Of each name the last, unless all are asked for.
      const found =
        call.query['filter'] === 'all'
          ? named
          : [...new Map(named.map((run) => [run.name, run])).values()];
      const { items, headers } = paginate(found.toReversed(), call);
      return {
        status: 200,
        body: { total_count: found.length, check_runs: items.map(checkRunJson) },
        headers,
      };
    },
  );
}

function createStatus(world: World, call: Call): Answer {
  const { state, description, context = 'default', target_url: target } = bodyOf(call);
  const sha = call.params['sha'] ?? '';
  if (!isCommit(sha)) return answers.invalid(`No commit found for SHA: ${sha}`, call.docs);
  if (typeof state !== 'string' || !STATES.includes(state))
    return answers.invalidFields(
      'Status',
      [['state', 'state is not included in the list']],
      call.docs,
    );
  if (typeof context !== 'string' || context.length > 255)
    return answers.invalidFields(
      'Status',
      [['context', 'context is too long (maximum is 255 characters)']],
      call.docs,
    );
  const text = typeof description === 'string' ? description : null;
  if (text !== null && /[\u{10000}-\u{10FFFF}]/u.test(text))
    return answers.invalidFields(
      'Status',
      [['description', "description doesn't accept 4-byte Unicode"]],
      call.docs,
    );
  if (text !== null && text.length > 140)
    return answers.invalidFields(
      'Status',
      [['description', 'description is too long (maximum is 140 characters)']],
      call.docs,
    );
  const before = world.commits
    .statuses(repoOf(call), sha)
    .filter((status) => status.context.toLowerCase() === context.toLowerCase());
  if (before.length >= MAX_STATUSES)
    return answers.invalid(
      'This SHA and context has reached the maximum number of statuses.',
      call.docs,
    );
  const status = {
    repo: repoOf(call),
    sha,
    state: state as 'error',
    context,
    description: text,
    target_url: typeof target === 'string' ? target : null,
  };
  return { status: 201, body: statusJson(world.commits.addStatus(status)) };
}

function createCheckRun(world: World, call: Call): Answer {
  const { name, head_sha: sha } = bodyOf(call);
  const why = whyNoCheckRun(call);
  if (why !== undefined) return why;
  if (typeof name !== 'string' || name === '')
    return answers.invalid('Invalid request.\n\n"name" wasn\'t supplied.', call.docs);
  if (typeof sha !== 'string' || !isCommit(sha))
    return answers.invalid(`No commit found for SHA: ${String(sha)}`, call.docs);
  const none = {
    status: 'queued',
    conclusion: null,
    external_id: '',
    details_url: null,
    started_at: null,
    completed_at: null,
    title: null,
    summary: null,
  } as const;
  return {
    status: 201,
    body: checkRunJson(
      world.commits.addCheckRun({ ...none, repo: repoOf(call), sha, name, ...changes(call) }),
    ),
  };
}

function whyNoCheckRun(call: Call): Answer | undefined {
  if (call.credential?.kind !== 'app') return answers.needsApp(call.docs);
  const { status, conclusion, output } = bodyOf(call);
  for (const [value, possible] of [
    [status, CHECK_STATUSES],
    [conclusion, CONCLUSIONS],
  ] as const) {
    if (value !== undefined && !possible.some((each) => each === value))
      return answers.invalid(
        `Invalid request.\n\n${JSON.stringify(value)} is not a possible value. Must be one of the following: ${possible.join(', ')}.`,
        call.docs,
      );
  }
  if (status === 'completed' && conclusion === undefined)
    return answers.invalid('Invalid request.\n\nNo subschema in "anyOf" matched.', call.docs);
  const { title, summary } = (output ?? { title: '', summary: '' }) as Record<string, unknown>;
  if (typeof title !== 'string' || typeof summary !== 'string')
    return answers.invalid('Invalid request.\n\n"title", "summary" weren\'t supplied.', call.docs);
  if (summary.length > MAX_SUMMARY)
    return answers.invalid(
      `Invalid request.\n\nOnly ${MAX_SUMMARY} characters are allowed; ${summary.length} were supplied.`,
      call.docs,
    );
  return undefined;
}

/** What a request says of a check run; a conclusion completes it. */
function changes(call: Call): Partial<SimulatedCheckRun> {
  const { status, conclusion, external_id, details_url, started_at, completed_at, output } = bodyOf(
    call,
  ) as Partial<SimulatedCheckRun> & { output?: { title: string; summary: string } };
  const said = {
    status: conclusion === undefined ? status : ('completed' as const),
    conclusion,
    external_id,
    details_url,
    started_at,
    completed_at,
    title: output?.title,
    summary: output?.summary,
  };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
}

const bodyOf = ({ body }: Call): Record<string, unknown> =>
  typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
const isCommit = (sha: string): boolean => /^[0-9a-f]{40}$/i.test(sha);
