import type { FastifyInstance } from 'fastify';
import type { Answer } from './responses.ts';
import * as answers from './responses.ts';
import { runnerJson } from './githubJson.ts';
import { encodeJitConfig } from './jitConfig.ts';
import { paginate } from './pages.ts';
import type { Registration } from './registrations.ts';
import { serve, type Call, type Endpoint } from './rest.ts';
import type { ScopePath } from './types.ts';
import type { World } from './world.ts';

const SCOPES: {
  prefix: string;
  noun: string;
  scope: (params: Record<string, string>) => ScopePath;
}[] = [
  { prefix: '/orgs/{org}', noun: 'an-organization', scope: ({ org }) => `orgs/${org}` },
  {
    prefix: '/repos/{owner}/{repo}',
    noun: 'a-repository',
    scope: ({ owner, repo }) => `repos/${owner}/${repo}`,
  },
  {
    prefix: '/enterprises/{enterprise}',
    noun: 'an-enterprise',
    scope: ({ enterprise }) => `enterprises/${enterprise}`,
  },
];

/**
 * Serves runners, runner groups and registrations:
 * https://docs.github.com/rest/actions/self-hosted-runners
 */
export function serveRunnerEndpoints(server: FastifyInstance, world: World): void {
  const staleLists = new Map<ScopePath, { atMs: number; runners: Record<string, unknown>[] }>();
  for (const { prefix, noun, scope } of SCOPES) {
    const docs = (action: string, preposition: string): string =>
      `${answers.DOCS}/actions/self-hosted-runners#${action}-${preposition}-${noun}`;
    const on = (endpoint: Omit<Endpoint, 'scope'>): void =>
      serve(server, world, { ...endpoint, path: `${prefix}/actions/${endpoint.path}`, scope });
    on({
      method: 'GET',
      path: 'runners',
      docs: docs('list-self-hosted-runners', 'for'),
      answer: (call) => listRunners(world, call, staleLists),
    });
    on({
      method: 'GET',
      path: 'runners/{runner_id}',
      docs: docs('get-a-self-hosted-runner', 'for'),
      answer: (call) => getRunner(world, call),
    });
    on({
      method: 'GET',
      path: 'runners/deprecations/{version}',
      docs: docs('get-runner-version-deprecation', 'for'),
      answer: (call) => getDeprecation(world, call),
    });
    on({
      method: 'DELETE',
      path: 'runners/{runner_id}',
      docs: docs('delete-a-self-hosted-runner', 'from'),
      answer: (call) => deleteRunner(world, call),
    });
    on({
      method: 'POST',
      path: 'runners/generate-jitconfig',
      docs: docs('create-configuration-for-a-just-in-time-runner', 'for'),
      answer: (call) => generateJitConfig(world, call),
    });
    for (const kind of ['registration', 'remove'] as const) {
      on({
        method: 'POST',
        path: `runners/${kind}-token`,
        docs: docs(`create-a-${kind}-token`, 'for'),
        answer: (call) => {
          const { token, expiresMs } = world.registrationTokens.create(
            call.scope,
            kind,
            world.settings.registrationTokenMs,
          );
          return { status: 201, body: { token, expires_at: new Date(expiresMs).toISOString() } };
        },
      });
    }
    if (prefix.startsWith('/repos')) continue;
    on({
      method: 'GET',
      path: 'runner-groups',
      docs: `${answers.DOCS}/actions/self-hosted-runner-groups`,
      answer: (call) => listGroups(world, call),
    });
  }
}

function listRunners(
  world: World,
  call: Call,
  staleLists: Map<ScopePath, { atMs: number; runners: Record<string, unknown>[] }>,
): Answer {
  const { name } = call.query;
  const stale = world.faults.first(['stale_list'], call.target);
  const cached = staleLists.get(call.scope);
  const old =
    stale && cached && Date.now() - cached.atMs < (stale.ageMs ?? 60_000)
      ? cached.runners
      : undefined;
  let matching: Record<string, unknown>[];
  if (old) matching = old.filter((runner) => name === undefined || runner['name'] === name);
  else {
    const lies = liesFor(world, call);
    const all = world.registrations.list(call.scope);
    matching = all
      .filter((registration) => name === undefined || registration.name === name)
      .map((registration) => view(world, registration, lies));
    if (stale)
      staleLists.set(call.scope, {
        atMs: Date.now(),
        runners: all.map((registration) => view(world, registration, lies)),
      });
  }
  const { items, headers } = paginate(matching, call);
  return { status: 200, body: { total_count: matching.length, runners: items }, headers };
}

interface Lies {
  busy: boolean;
  offline: boolean;
}

const liesFor = (world: World, call: Call): Lies => ({
  busy: world.faults.first(['busy_lies'], call.target) !== undefined,
  offline: world.faults.first(['offline_lies'], call.target) !== undefined,
});

const view = (world: World, registration: Registration, lies: Lies): Record<string, unknown> =>
  runnerJson(
    registration,
    world.dispatch.sessions.online(registration) && !lies.offline,
    world.busy(registration) && !lies.busy,
  );

const lookUp = (world: World, call: Call): Registration | undefined =>
  world.registrations.byId(call.scope, Number(call.params['runner_id']));

/** https://github.blog/changelog/2026-09-03-github-actions-early-september-2026-updates */
function getDeprecation(world: World, call: Call): Answer {
  const version = call.params['version'] ?? '';
  if (!/^\d+\.\d+\.\d+$/.test(version)) return answers.notFound(call.docs);
  const { runtime = null, registration = null } = world.settings.versionDeadlines[version] ?? {};
  return {
    status: 200,
    body: {
      runner_version: version,
      runtime_deprecates_at: runtime,
      registration_deprecates_at: registration,
    },
  };
}

function getRunner(world: World, call: Call): Answer {
  const registration = lookUp(world, call);
  return registration
    ? { status: 200, body: view(world, registration, liesFor(world, call)) }
    : answers.notFound(call.docs);
}

function deleteRunner(world: World, call: Call): Answer {
  const registration = lookUp(world, call);
  if (!registration) return answers.notFound(call.docs);
  const lie = world.faults.first(['delete_says_busy'], call.target);
  if (lie) return answers.busy(registration.name, lie.text ?? world.settings.busyText, call.docs);
  if (world.busy(registration)) {
    const busyForMs = world.dispatch.busyForMs(registration);
    const accepts =
      busyForMs === undefined
        ? undefined
        : world.faults.first(['delete_accepts_busy'], call.target);
    if (!accepts || busyForMs === undefined || busyForMs > (accepts.forMs ?? 60_000))
      return answers.busy(registration.name, world.settings.busyText, call.docs);
  }
  world.dispatch.remove(registration);
  return { status: 204 };
}

function generateJitConfig(world: World, call: Call): Answer {
  const problem = jitProblem(call.body);
  if (problem !== undefined) return answers.invalid(`Invalid request.\n\n${problem}`, call.docs);
  const {
    name,
    runner_group_id: groupId,
    labels,
    work_folder: workFolder = '_work',
  } = call.body as JitBody;
  const group = world.settings.groups.find(
    (candidate) =>
      candidate.id === groupId && candidate.scope.toLowerCase() === call.scope.toLowerCase(),
  );
  if (!group && groupId !== 1) return answers.notFound(call.docs);
  if (group?.jitStatus === 404) return answers.notFound(call.docs);
  if (group?.jitStatus === 403)
    return answers.forbidden(call.credential?.kind === 'app' ? 'app' : 'token', call.docs);
  const registration = world.registrations.add({
    name,
    scope: call.scope,
    groupId,
    labels: [...new Set(labels)],
    ephemeral: true,
    jit: true,
  });
  if (!registration) return answers.nameTaken(name, call.docs);
  world.changes.bump();
  const encoded = encodeJitConfig(registration, world.settings.publicUrl ?? world.url, workFolder);
  return {
    status: 201,
    body: { runner: runnerJson(registration, false, false), encoded_jit_config: encoded },
  };
}

interface JitBody {
  name: string;
  runner_group_id: number;
  labels: string[];
  work_folder?: string;
}

/** Returns the error of an invalid request, as in GitHub's validation. */
function jitProblem(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return 'Invalid input: data cannot be null.';
  const {
    name,
    runner_group_id: groupId,
    labels,
    work_folder: workFolder,
  } = body as Partial<Record<keyof JitBody, unknown>>;
  for (const key of ['name', 'runner_group_id', 'labels'])
    if (!(key in body)) return `Invalid input: object is missing required key: ${key}`;
  if (typeof name !== 'string')
    return `For 'properties/name', ${JSON.stringify(name)} is not a string.`;
  if (name.length === 0 || name.length > 64)
    return 'Runner name must be between 1 and 64 characters.';
  if (!Number.isInteger(groupId))
    return `For 'properties/runner_group_id', ${JSON.stringify(groupId)} is not an integer.`;
  if (!Array.isArray(labels) || !labels.every((label) => typeof label === 'string'))
    return `For 'properties/labels', ${JSON.stringify(labels)} is not an array.`;
  if (labels.length === 0)
    return 'No subschema in "anyOf" matched. For \'properties/labels\', [] does not have at least 1 item.';
  if (labels.length > 100) return "For 'properties/labels', there are more than 100 items.";
  if (labels.some((label) => label.length === 0 || label.length > 256))
    return 'Label names must be between 1 and 256 characters.';
  if (workFolder !== undefined && typeof workFolder !== 'string')
    return "For 'properties/work_folder', it is not a string.";
  return undefined;
}

function listGroups(world: World, call: Call): Answer {
  const base = `https://api.github.com/${call.scope}/actions/runner-groups`;
  const custom = world.settings.groups.filter(
    (group) => group.scope.toLowerCase() === call.scope.toLowerCase(),
  );
  const groups = [{ id: 1, name: 'Default' }, ...custom.filter((group) => group.id !== 1)].map(
    ({ id, name }) => ({
      id,
      name,
      visibility: 'all',
      default: id === 1,
      runners_url: `${base}/${id}/runners`,
      ...(call.scope.startsWith('orgs/') ? { inherited: false } : {}),
      allows_public_repositories: false,
      restricted_to_workflows: false,
      selected_workflows: [],
      workflow_restrictions_read_only: false,
    }),
  );
  const { items, headers } = paginate(groups, call);
  return { status: 200, body: { total_count: groups.length, runner_groups: items }, headers };
}
