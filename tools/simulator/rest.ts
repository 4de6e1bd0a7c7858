import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from './responses.ts';
import * as answers from './responses.ts';
import { sees, type Credential } from './credentials.ts';
import type { FaultTarget } from './faults.ts';
import type { SimulatedApp } from './options.ts';
import { whose } from './rateLimits.ts';
import type { ScopePath } from './types.ts';
import type { World } from './world.ts';

/** One request to a REST endpoint, checked and ready to be answered. */
export interface Call {
  params: Record<string, string>;
  query: Record<string, string>;
  body: unknown;
  scope: ScopePath;
  docs: string;
  /** For the endpoint's own faults. */
  target: FaultTarget;
  /** Requested URL, with its query. */
  url: URL;
  /** For `auth: 'app'` only. */
  app?: SimulatedApp;
  credential?: Credential;
  /** The header as it came. For `auth: 'remote'` only. */
  authorization?: string;
}

export interface Endpoint {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As in GitHub's description: `/orgs/{org}/actions/runners`. */
  path: string;
  /**
   * Required authentication. `token`: personal access token or installation token; `app`: the App's
   * JWT; `optional`: none, and without the primary limit; `remote`: the endpoint checks it.
   * @default "token"
   */
  auth?: 'token' | 'app' | 'optional' | 'remote';
  /** The scope it belongs to; the credential must see it. */
  scope?: (params: Record<string, string>) => ScopePath;
  docs: string;
  answer: (call: Call) => Answer | Promise<Answer>;
}

/** Serves an endpoint at the root and, as on GitHub Enterprise Server, under `/api/v3`. */
export function serve(server: FastifyInstance, world: World, endpoint: Endpoint): void {
  for (const prefix of ['', '/api/v3']) {
    server.route({
      method: endpoint.method,
      url: prefix + endpoint.path.replace(/\{(\w+)\}/g, ':$1'),
      handler: async (request, reply) => handle(world, endpoint, request, reply),
    });
  }
}

async function handle(
  world: World,
  endpoint: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const url = new URL(request.url, `http://${request.headers.host ?? 'localhost'}`);
  const path = url.pathname.replace(/^\/api\/v3/, '');
  const { authorization } = request.headers;
  const ownAuth = endpoint.auth === 'app' || endpoint.auth === 'remote';
  const found = ownAuth ? undefined : world.credentials.authenticate(authorization);
  const credential = found && 'kind' in found ? found : undefined;
  const params = request.params as Record<string, string>;
  const call: Call = {
    params,
    query: Object.fromEntries(url.searchParams),
    body: request.body,
    scope: endpoint.scope?.(params) ?? '',
    docs: endpoint.docs,
    target: { endpoint: `${endpoint.method} ${path}`, credential: credential?.name },
    url,
    ...(credential ? { credential } : {}),
    ...(endpoint.auth === 'remote' && authorization !== undefined ? { authorization } : {}),
  };
  const owner = credential?.name ?? 'anonymous';
  world.limits.began(owner);
  const at = new Date().toISOString();
  let answer: Answer;
  let dropped: 'before' | 'after' | undefined;
  try {
    for (const { ms } of world.faults.take(['latency'], call.target)) await sleep(ms);
    const drop = world.faults.first(['drop'], call.target);
    dropped = drop && (drop.when ?? 'before');
    answer =
      dropped === 'before'
        ? { status: 0 }
        : await decide(world, endpoint, call, found, authorization);
  } finally {
    world.limits.ended(owner);
  }
  answer = conditional(world, endpoint, request, answer, owner);
  world.requests.add({
    at,
    endpoint: `${endpoint.method} ${endpoint.path}`,
    path,
    status: dropped ? 0 : answer.status,
    ...(credential ? { credential: credential.name } : {}),
  });
  world.changes.bump();
  if (dropped) {
    reply.hijack();
    request.raw.socket.destroy();
    return reply;
  }
  return send(world, reply, answer, owner, credential);
}

/** Everything that may come before the endpoint's own answer, in GitHub's order. */
async function decide(
  world: World,
  endpoint: Endpoint,
  call: Call,
  found: Credential | Answer | undefined,
  authorization: string | undefined,
): Promise<Answer> {
  const broken = world.faults.first(['status'], call.target);
  if (broken)
    return {
      status: broken.status,
      body: broken.body ?? { message: 'Server Error' },
      ...(broken.headers ? { headers: broken.headers } : {}),
    };
  const { credential } = call;
  if (endpoint.auth === 'app') {
    const app = world.credentials.authenticateApp(authorization);
    if ('status' in app) return app;
    call.app = app;
  } else if (
    endpoint.auth !== 'remote' &&
    !credential &&
    !(endpoint.auth === 'optional' && authorization === undefined)
  ) {
    return found && !('kind' in found) ? found : answers.badCredentials();
  }
  const secondary = world.faults.first(['secondary_limit'], call.target);
  if (secondary)
    return answers.secondaryLimit(
      secondary.status ?? 403,
      secondary.form ?? 'modern',
      secondary.retryAfterS,
    );
  const primary = world.faults.first(['primary_limit'], call.target);
  if (primary) {
    const reset = Math.ceil((Date.now() + (primary.resetInMs ?? 60_000)) / 1000);
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) };
    return {
      ...answers.primaryLimit(primary.status ?? 403, credential ? whose(credential) : 'user ID 0'),
      headers,
    };
  }
  const limited =
    credential && endpoint.auth !== 'optional'
      ? world.limits.take(credential, endpoint.method, `${endpoint.method} ${endpoint.path}`)
      : undefined;
  if (limited) return limited;
  const refused = credential ? access(world, endpoint, call, credential) : undefined;
  return refused ?? endpoint.answer(call);
}

function access(
  world: World,
  endpoint: Endpoint,
  call: Call,
  credential: Credential,
): Answer | undefined {
  const kind = credential.kind === 'app' ? 'app' : 'token';
  if (world.faults.first(['not_found'], call.target)) return answers.notFound(call.docs);
  if (world.faults.first(['forbidden'], call.target)) return answers.forbidden(kind, call.docs);
  if (!endpoint.scope) return undefined;
  // Apps cannot use the runner API of an enterprise:
  // https://docs.github.com/rest/actions/self-hosted-runners
  if (call.scope.startsWith('enterprises/') && kind === 'app')
    return answers.forbidden(kind, call.docs);
  if (!sees(credential, call.scope)) return answers.notFound(call.docs);
  if (endpoint.method !== 'GET' && credential.permission !== 'admin')
    return answers.forbidden(kind, call.docs);
  return undefined;
}

/**
 * Returns 304, without the primary limit, if the client already has the response. The ETag depends
 * on the credential's token.
 */
function conditional(
  world: World,
  endpoint: Endpoint,
  request: FastifyRequest,
  answer: Answer,
  owner: string,
): Answer {
  if (endpoint.method !== 'GET' || answer.status !== 200 || endpoint.auth === 'optional')
    return answer;
  const hash = createHash('sha256')
    .update(`${request.headers.authorization}\n${JSON.stringify(answer.body)}`)
    .digest('hex');
  const etag = `W/"${hash}"`;
  if (request.headers['if-none-match'] === etag) {
    world.limits.refund(owner);
    return { status: 304, headers: { etag } };
  }
  return {
    ...answer,
    headers: { ...answer.headers, etag, 'cache-control': 'private, max-age=60, s-maxage=60' },
  };
}

function send(
  world: World,
  reply: FastifyReply,
  answer: Answer,
  owner: string,
  credential: Credential | undefined,
): FastifyReply {
  const limit = world.limits.status(owner);
  void reply.code(answer.status).headers({
    'x-github-api-version-selected': '2022-11-28',
    'x-github-media-type': 'github.v3; format=json',
    'x-github-request-id': requestId(),
    'x-ratelimit-limit': String(limit.limit),
    'x-ratelimit-remaining': String(limit.remaining),
    'x-ratelimit-reset': String(limit.reset),
    'x-ratelimit-resource': 'core',
    'x-ratelimit-used': String(limit.used),
    ...(credential?.kind === 'token'
      ? { 'x-oauth-scopes': 'admin:org, manage_runners:enterprise, repo' }
      : {}),
    ...answer.headers,
  });
  if (answer.body === undefined) return reply.send();
  return reply
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(answer.body));
}

let requestCount = 0;
const requestId = (): string =>
  `5151:0:${(++requestCount).toString(16).toUpperCase().padStart(6, '0')}:${Date.now().toString(16).toUpperCase()}`;
