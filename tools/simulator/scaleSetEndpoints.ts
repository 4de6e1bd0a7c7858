import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from './responses.ts';
import * as answers from './responses.ts';
import { encodeJitConfig } from './jitConfig.ts';
import type { Registration } from './registrations.ts';
import { serve } from './rest.ts';
import { newToken, type ScaleSet, type ScaleSetSession } from './scaleSets.ts';
import type { ScopePath } from './types.ts';
import type { World } from './world.ts';

const SETS = '/tenant/_apis/runtime/runnerscalesets';
const AGENTS = '/tenant/_apis/distributedtask/pools/0/agents';
const WEB_API = 'GitHub.Actions.Runtime.WebApi';
const TASK_API = 'GitHub.DistributedTask.WebApi';

/** One request to the Actions service. */
interface Call {
  readonly scope: ScopePath;
  readonly params: Record<string, string>;
  readonly query: URLSearchParams;
  readonly body: Record<string, unknown>;
  readonly rawBody: unknown;
  readonly request: FastifyRequest;
}

type Handler = (call: Call) => Answer | Promise<Answer>;

/**
 * Serves the Actions service, which has the scale sets:
 * https://github.com/actions/scaleset/blob/v0.4.0/client.go
 */
export function serveScaleSets(server: FastifyInstance, world: World): void {
  serve(server, world, {
    method: 'POST',
    path: '/actions/runner-registration',
    auth: 'remote',
    docs: answers.DOCS,
    answer: ({ authorization = '', body }) => connect(world, authorization, body),
  });
  const route = (method: string, url: string, handler: Handler): void =>
    serveTenant(server, world, method, url, handler);
  serveSets(route, world);
  serveSet(route, world);
  serveSessions(route, world);
  serveQueue(route, world);
  serveAgents(route, world);
}

/** Exchanges a registration token for the tenant's address and a JWT. */
function connect(world: World, authorization: string, body: unknown): Answer {
  const { url = '', runner_event: event } = (body ?? {}) as { url?: string; runner_event?: string };
  const path = URL.canParse(url) ? new URL(url).pathname.split('/').filter(Boolean) : [];
  const [first = '', second] = path;
  const owner = second === undefined ? `orgs/${first}` : `repos/${first}/${second}`;
  const scope = first.toLowerCase() === 'enterprises' ? `enterprises/${second}` : owner;
  const token = /^RemoteAuth (\S+)$/.exec(authorization)?.[1] ?? '';
  if (event !== 'register' || !world.registrationTokens.valid(token, scope))
    return answers.badCredentials();
  const expiresMs = Date.now() + world.settings.tenantTokenMs;
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const jwt = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ exp: Math.floor(expiresMs / 1000), nonce: newToken() })}.${newToken()}`;
  world.tenantTokens.set(jwt, { scope, expiresMs });
  return {
    status: 200,
    body: { url: `${world.settings.publicUrl ?? world.url}/tenant/`, token: jwt },
  };
}

function serveTenant(
  server: FastifyInstance,
  world: World,
  method: string,
  url: string,
  handler: Handler,
): void {
  const endpoint = `${method} ${url.replace(/:(\w+)/g, '{$1}')}`;
  server.route({
    method: method as 'GET',
    url,
    handler: async (request, reply) => {
      const asked = new URL(request.url, 'http://localhost');
      const target = { endpoint: `${method} ${asked.pathname}` };
      const at = new Date().toISOString();
      for (const { ms } of world.faults.take(['latency'], target)) await sleep(ms);
      const drop = world.faults.first(['drop'], target);
      let answer: Answer = { status: 0 };
      if (drop === undefined || drop.when === 'after')
        answer = faulty(world, target) ?? (await answerOf(world, request, asked, handler));
      const status = drop === undefined ? answer.status : 0;
      world.requests.add({ at, endpoint, path: asked.pathname, status });
      world.changes.bump();
      if (drop !== undefined) {
        reply.hijack();
        request.raw.socket.destroy();
        return reply;
      }
      return await send(reply, answer);
    },
  });
}

function faulty(world: World, target: { endpoint: string }): Answer | undefined {
  const broken = world.faults.first(['status'], target);
  if (broken) return { status: broken.status, body: broken.body ?? { message: 'Server Error' } };
  const limit = world.faults.first(['secondary_limit'], target);
  return (
    limit && answers.secondaryLimit(limit.status ?? 429, limit.form ?? 'modern', limit.retryAfterS)
  );
}

async function answerOf(
  world: World,
  request: FastifyRequest,
  asked: URL,
  handler: Handler,
): Promise<Answer> {
  const isQueue = asked.pathname.startsWith('/tenant/queue/');
  const isAcquire = asked.pathname.endsWith('/acquirejobs');
  const token = tokenOf(request);
  const admin = world.tenantTokens.get(token);
  const isAdmin = admin !== undefined && admin.expiresMs > Date.now();
  if (!isQueue && !isAcquire && !isAdmin)
    return exception(401, 'UnauthorizedAccessException', 'Unauthorized');
  if (!isQueue && asked.searchParams.get('api-version') === null)
    return exception(400, 'VssVersionNotSpecifiedException', 'api-version is required');
  return await handler({
    scope: admin?.scope ?? '',
    params: request.params as Record<string, string>,
    query: asked.searchParams,
    body: (request.body ?? {}) as Record<string, unknown>,
    rawBody: request.body,
    request,
  });
}

async function send(reply: FastifyReply, answer: Answer): Promise<FastifyReply> {
  void reply.code(answer.status).headers({ activityid: newToken(), ...answer.headers });
  if (answer.body === undefined) return await reply.send();
  // GitHub's bodies begin with a byte order mark at times.
  return await reply
    .header('content-type', 'application/json; charset=utf-8')
    .send(`\uFEFF${JSON.stringify(answer.body)}`);
}

type Route = (method: string, url: string, handler: Handler) => void;

function serveSets(route: Route, world: World): void {
  const { scaleSets } = world;
  route('GET', '/tenant/_apis/runtime/runnergroups/', ({ scope, query }) => {
    const groups = groupsOf(world, scope).filter(
      ({ name }) => name.toLowerCase() === query.get('groupName')?.toLowerCase(),
    );
    return list(groups.map(({ id, name }) => ({ id, name, size: 0, isDefaultGroup: id === 1 })));
  });
  route('GET', SETS, ({ scope, query }) => {
    const group = query.get('runnerGroupId');
    const found = scaleSets.list(
      scope,
      group === null ? undefined : Number(group),
      query.get('name') ?? undefined,
    );
    return list(found.map((set) => setJson(world, set)));
  });
  route('POST', SETS, ({ scope, body }) => {
    const { name, groupId, labels } = setBody(body);
    if (name === undefined) return exception(400, 'ArgumentException', 'name is required');
    if (!groupsOf(world, scope).some(({ id }) => id === groupId))
      return exception(404, `${WEB_API}.RunnerGroupNotFoundException`, 'no such runner group');
    const set = scaleSets.create({ scope, name, groupId, labels: labels ?? [] });
    return set === undefined
      ? exception(
          409,
          `${WEB_API}.RunnerScaleSetExistsException`,
          `Runner scale set ${name} already exists`,
        )
      : { status: 200, body: setJson(world, set) };
  });
}

function serveSet(route: Route, world: World): void {
  const { scaleSets } = world;
  route(
    'GET',
    `${SETS}/:id`,
    withSet(world, (set) => ({ status: 200, body: setJson(world, set) })),
  );
  route(
    'PATCH',
    `${SETS}/:id`,
    withSet(world, (set, { body }) => {
      const { name, labels } = setBody(body);
      scaleSets.update(set, {
        ...(name === undefined ? {} : { name }),
        ...(labels === undefined ? {} : { labels }),
      });
      return { status: 200, body: setJson(world, set) };
    }),
  );
  route(
    'DELETE',
    `${SETS}/:id`,
    withSet(world, (set) => {
      world.removeScaleSet(set);
      return { status: 204 };
    }),
  );
  route(
    'POST',
    `${SETS}/:id/generatejitconfig`,
    withSet(world, (set, { body }) => generateJit(world, set, body)),
  );
}

function serveSessions(route: Route, world: World): void {
  const { scaleSets } = world;
  route(
    'POST',
    `${SETS}/:id/sessions`,
    withSet(world, (set, { body }) => {
      const owner = textOf(body['ownerName']);
      const session = scaleSets.openSession(set, owner);
      return session === undefined
        ? exception(
            409,
            `${WEB_API}.RunnerScaleSetSessionConflictException`,
            `The actions runner scale set ${set.name} already has an active session for owner ${set.session?.owner}.`,
          )
        : { status: 200, body: sessionJson(world, set, session) };
    }),
  );
  route(
    'PATCH',
    `${SETS}/:id/sessions/:session`,
    withSession(world, (set, session) => {
      session.token = newToken();
      session.lastSeenMs = Date.now();
      return { status: 200, body: sessionJson(world, set, session) };
    }),
  );
  route(
    'DELETE',
    `${SETS}/:id/sessions/:session`,
    withSession(world, (set) => {
      scaleSets.endSession(set);
      return { status: 204 };
    }),
  );
}

function serveQueue(route: Route, world: World): void {
  const { scaleSets } = world;
  route('POST', `${SETS}/:id/acquirejobs`, ({ params, rawBody, request }) => {
    const set = scaleSets.byId(Number(params['id']));
    if (!set?.session) return noSession();
    if (tokenOf(request) !== set.session.token) return expired();
    return list(scaleSets.acquire(set, (rawBody ?? []) as number[]));
  });
  const queue =
    (
      handler: (set: ScaleSet, session: ScaleSetSession, call: Call) => Answer | Promise<Answer>,
    ): Handler =>
    (call) => {
      const set = scaleSets.byId(Number(call.params['id']));
      const session = set && scaleSets.session(set, call.params['session'] ?? '');
      if (!set || !session) return noSession();
      if (tokenOf(call.request) !== session.token) return expired();
      return handler(set, session, call);
    };
  route(
    'GET',
    '/tenant/queue/:id/:session',
    queue((set, session, call) => poll(world, set, session, call)),
  );
  route(
    'DELETE',
    '/tenant/queue/:id/:session/:message',
    queue((set, _session, { params }) => {
      set.unacknowledged.delete(Number(params['message']));
      return { status: 204 };
    }),
  );
}

/** Holds the request until there is a message, as long as GitHub does. */
async function poll(
  world: World,
  set: ScaleSet,
  session: ScaleSetSession,
  { query, request }: Call,
): Promise<Answer> {
  const { token } = session;
  const { socket } = request.raw;
  const until = Date.now() + world.settings.scaleSetPollMs;
  session.polls++;
  try {
    world.scaleSets.setCapacity(set, Number(request.headers['x-scalesetmaxcapacity'] ?? 0));
    for (;;) {
      const { version } = world.changes;
      if (set.session !== session || world.scaleSets.byId(set.id) !== set) return noSession();
      if (session.token !== token) return expired();
      const message = world.scaleSets.nextMessage(set, Number(query.get('lastMessageId') ?? 0));
      if (message)
        return {
          status: 200,
          body: {
            messageId: message.id,
            messageType: 'RunnerScaleSetJobMessages',
            body: JSON.stringify(message.entries),
            statistics: world.scaleSets.statistics(set),
          },
        };
      const left = until - Date.now();
      if (left <= 0 || socket.destroyed) return { status: 202 };
      await world.changes.next(version, Math.min(left, 1_000));
    }
  } finally {
    session.polls--;
    session.lastSeenMs = Date.now();
  }
}

function serveAgents(route: Route, world: World): void {
  const one =
    (handler: (registration: Registration) => Answer): Handler =>
    ({ scope, params }) => {
      const found = world.registrations.byId(scope, Number(params['agent']));
      return found === undefined
        ? exception(404, `${TASK_API}.TaskAgentNotFoundException`, 'no such agent')
        : handler(found);
    };
  route('GET', AGENTS, ({ scope, query }) => {
    const found = world.registrations.byName(scope, query.get('agentName') ?? '');
    return list(found === undefined ? [] : [agentJson(found)]);
  });
  route(
    'GET',
    `${AGENTS}/:agent`,
    one((found) => ({ status: 200, body: agentJson(found) })),
  );
  route(
    'DELETE',
    `${AGENTS}/:agent`,
    one((found) => {
      if (world.busy(found))
        return exception(
          400,
          `${TASK_API}.JobStillRunningException`,
          `Agent ${found.name} is still running a job`,
        );
      world.dispatch.remove(found);
      return { status: 204 };
    }),
  );
}

function generateJit(world: World, set: ScaleSet, body: Record<string, unknown>): Answer {
  const name = textOf(body['name']);
  if (name === '') return exception(400, 'ArgumentException', 'name is required');
  const registration = world.registrations.add({
    name,
    scope: set.scope,
    groupId: set.groupId,
    labels: set.labels,
    ephemeral: true,
    jit: true,
    scaleSetId: set.id,
  });
  if (!registration)
    return exception(
      409,
      `${TASK_API}.TaskAgentExistsException`,
      `A runner with the name ${name} already exists`,
    );
  world.changes.bump();
  const server = world.settings.publicUrl ?? world.url;
  return {
    status: 200,
    body: {
      runner: agentJson(registration),
      encodedJITConfig: encodeJitConfig(registration, server, textOf(body['workFolder'], '_work')),
    },
  };
}

function withSet(world: World, handler: (set: ScaleSet, call: Call) => Answer): Handler {
  return (call) => {
    const set = world.scaleSets.get(call.scope, Number(call.params['id']));
    return set === undefined
      ? exception(404, `${WEB_API}.RunnerScaleSetNotFoundException`, 'No runner scale set found')
      : handler(set, call);
  };
}

function withSession(
  world: World,
  handler: (set: ScaleSet, session: ScaleSetSession, call: Call) => Answer,
): Handler {
  return withSet(world, (set, call) => {
    const session = world.scaleSets.session(set, call.params['session'] ?? '');
    return session === undefined ? noSession() : handler(set, session, call);
  });
}

const noSession = (): Answer =>
  exception(404, `${WEB_API}.RunnerScaleSetSessionNotFoundException`, 'No such session');
const expired = (): Answer =>
  exception(401, `${TASK_API}.MessageQueueTokenExpiredException`, 'The token has expired');
const tokenOf = (request: FastifyRequest): string =>
  /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
const list = (value: readonly unknown[]): Answer => ({
  status: 200,
  body: { count: value.length, value },
});
const exception = (status: number, typeName: string, message: string): Answer => ({
  status,
  body: { $id: '1', typeName, message },
});

function setBody(body: Record<string, unknown>): {
  name?: string;
  groupId: number;
  labels?: string[];
} {
  const { name, runnerGroupId, labels } = body as {
    name?: string;
    runnerGroupId?: number;
    labels?: { name: string }[];
  };
  return {
    ...(name === undefined || name === '' ? {} : { name }),
    groupId: runnerGroupId === undefined || runnerGroupId === 0 ? 1 : runnerGroupId,
    ...(labels === undefined ? {} : { labels: labels.map((label) => label.name) }),
  };
}

function setJson(world: World, set: ScaleSet): Record<string, unknown> {
  return {
    id: set.id,
    name: set.name,
    runnerGroupId: set.groupId,
    runnerGroupName: groupsOf(world, set.scope).find(({ id }) => id === set.groupId)?.name,
    labels: set.labels.map((name) => ({ name, type: 'System' })),
    RunnerSetting: {},
    createdOn: set.createdOn,
    runnerJitConfigUrl: `${world.url}${SETS}/${set.id}/generatejitconfig`,
    statistics: world.scaleSets.statistics(set),
  };
}

const sessionJson = (
  world: World,
  set: ScaleSet,
  session: ScaleSetSession,
): Record<string, unknown> => ({
  sessionId: session.id,
  ownerName: session.owner,
  runnerScaleSet: setJson(world, set),
  messageQueueUrl: `${world.settings.publicUrl ?? world.url}/tenant/queue/${set.id}/${session.id}?v=1`,
  messageQueueAccessToken: session.token,
  statistics: world.scaleSets.statistics(set),
});

const agentJson = ({ id, name, scaleSetId = 0 }: Registration): Record<string, unknown> => ({
  id,
  name,
  runnerScaleSetId: scaleSetId,
});

const groupsOf = (world: World, scope: ScopePath): { id: number; name: string }[] => [
  { id: 1, name: 'Default' },
  ...world.settings.groups.filter(
    (group) => group.id !== 1 && group.scope.toLowerCase() === scope.toLowerCase(),
  ),
];

const textOf = (value: unknown, otherwise = ''): string =>
  typeof value === 'string' ? value : otherwise;
