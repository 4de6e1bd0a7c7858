import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Registration } from './registrations.ts';
import type {
  CompleteBody,
  OutputBody,
  Rejection,
  RegisterBody,
  SessionResponse,
  SessionBody,
} from './runner/wire.ts';
import type { SimulatedJob } from './types.ts';
import type { World } from './world.ts';

/** Result of a handler; `undefined` is 204. */
type Outcome = { status: number; body?: unknown };

const refuse = (status: number, reason: Rejection['reason']): Outcome => ({
  status,
  body: { reason } satisfies Rejection,
});
const gone = refuse(404, 'deleted');

/**
 * Serves the protocol of the runners under `/_runner`. It is not GitHub's, and its requests are not
 * counted.
 */
export function serveRunnerProtocol(server: FastifyInstance, world: World): void {
  const route = (
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    handler: (request: FastifyRequest, reply: FastifyReply) => Outcome | Promise<Outcome>,
  ): void => {
    server.route({
      method,
      url: `/_runner/${path}`,
      handler: async (request, reply) => {
        const target = { endpoint: `${method} ${request.url.split('?')[0]}` };
        for (const { ms } of world.faults.take(['latency'], target)) await sleep(ms);
        const drop = world.faults.first(['drop'], target);
        const broken = world.faults.first(['status'], target);
        const answer = async (): Promise<Outcome> => {
          if (drop && drop.when !== 'after') return { status: 0 };
          if (broken) return { status: broken.status, body: broken.body };
          return await handler(request, reply);
        };
        const outcome = await answer();
        if (drop || request.raw.socket.destroyed) {
          reply.hijack();
          request.raw.socket.destroy();
          return reply;
        }
        return reply.code(outcome.status).send(outcome.body);
      },
    });
  };
  const asRunner =
    (
      handler: (registration: Registration, request: FastifyRequest) => Outcome | Promise<Outcome>,
    ) =>
    (request: FastifyRequest) => {
      const registration = world.registrations.byCredential(
        request.headers.authorization?.replace(/^Bearer /, '') ?? '',
      );
      return registration ? handler(registration, request) : gone;
    };
  const withJob = (
    handler: (registration: Registration, job: SimulatedJob, body: unknown) => boolean,
  ) =>
    asRunner((registration, request) => {
      const job = world.jobs.get(Number((request.params as { id: string }).id));
      return job && handler(registration, job, request.body) ? { status: 204 } : refuse(409, 'job');
    });

  route('POST', 'register', (request) => register(world, request.body as RegisterBody));
  route(
    'POST',
    'session',
    asRunner((registration, request) =>
      openSession(world, registration, request.body as SessionBody),
    ),
  );
  route(
    'DELETE',
    'session/:id',
    asRunner((registration, request) => {
      const session = world.dispatch.sessions.get((request.params as { id: string }).id);
      if (session?.registration === registration) world.dispatch.sessions.close(session);
      world.changes.bump();
      return { status: 204 };
    }),
  );
  route(
    'POST',
    'session/:id/detach',
    asRunner((registration, request) => {
      const session = world.dispatch.sessions.get((request.params as { id: string }).id);
      if (session?.registration === registration) world.dispatch.sessions.detach(session);
      return { status: 204 };
    }),
  );
  route(
    'GET',
    'message/:id',
    asRunner((registration, request) => poll(world, registration, request)),
  );
  route(
    'POST',
    'jobs/:id/start',
    withJob((registration, job) => world.dispatch.startJob(registration, job)),
  );
  route(
    'POST',
    'jobs/:id/renew',
    withJob((registration, job) => world.dispatch.renew(registration, job)),
  );
  route(
    'POST',
    'jobs/:id/output',
    withJob((registration, job, body) => {
      const { from, lines } = body as OutputBody;
      if (job.runner_id === registration.id) world.dispatch.addOutput(job, from, lines);
      return job.runner_id === registration.id;
    }),
  );
  route(
    'POST',
    'jobs/:id/complete',
    withJob((registration, job, body) =>
      world.dispatch.complete(registration, job, (body as CompleteBody).result),
    ),
  );
  server.get('/_runner/channel', (request, reply) => openChannel(world, request, reply));
}

function register(world: World, body: RegisterBody): Outcome {
  if (!world.registrationTokens.valid(body.token, body.scope)) return gone;
  if (deprecated(world, body.version)) return refuse(403, 'deprecated');
  const existing = world.registrations.byName(body.scope, body.name);
  if (existing && (!body.replace || world.busy(existing))) return refuse(409, 'conflict');
  if (existing) world.dispatch.remove(existing);
  const group = world.settings.groups.find(
    ({ name, scope }) => name === body.group && scope.toLowerCase() === body.scope.toLowerCase(),
  );
  const labels = [...new Set(['self-hosted', 'Linux', 'X64', ...body.labels])];
  const registration = world.registrations.add({
    name: body.name,
    scope: body.scope,
    groupId: group?.id ?? 1,
    labels,
    ephemeral: body.ephemeral,
    jit: false,
  });
  if (!registration) return refuse(409, 'conflict');
  registration.version = body.version;
  world.changes.bump();
  return {
    status: 201,
    body: {
      runnerId: registration.id,
      name: registration.name,
      credential: registration.credential,
    },
  };
}

function openSession(world: World, registration: Registration, body: SessionBody): Outcome {
  if (registration.removed) return gone;
  if (deprecated(world, body.version)) return refuse(403, 'deprecated');
  const session = world.dispatch.sessions.open(registration, body.channel);
  if ('reason' in session) return refuse(session.reason === 'conflict' ? 409 : 410, session.reason);
  registration.version = body.version;
  registration.os = body.os;
  world.changes.bump();
  const answer: SessionResponse = {
    sessionId: session.id,
    runnerId: registration.id,
    runnerName: registration.name,
    ephemeral: registration.ephemeral,
  };
  return { status: 200, body: answer };
}

async function poll(
  world: World,
  registration: Registration,
  request: FastifyRequest,
): Promise<Outcome> {
  const session = world.dispatch.sessions.get((request.params as { id: string }).id);
  if (!session || session.registration !== registration)
    return registration.removed ? gone : refuse(410, 'session');
  if (
    registration.version !== null &&
    deprecated(world, registration.version) &&
    registration.jobId === undefined
  )
    return refuse(403, 'deprecated');
  const left = new AbortController();
  const leave = (): void => left.abort();
  request.raw.socket.once('close', leave);
  try {
    const message = await world.dispatch.sessions.poll(session, world.settings.pollMs, left.signal);
    return message ? { status: 200, body: message } : { status: 204 };
  } finally {
    request.raw.socket.off('close', leave);
    world.changes.bump();
  }
}

/**
 * Opens a stream of JSON lines for a fleet of runners: first `{"channel": id}`, then the messages
 * of its sessions.
 */
function openChannel(world: World, request: FastifyRequest, reply: FastifyReply): void {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, { 'content-type': 'application/x-ndjson' });
  const channel = world.dispatch.sessions.addChannel((message) =>
    raw.write(`${JSON.stringify(message)}\n`),
  );
  raw.write(`${JSON.stringify({ channel: channel.id })}\n`);
  request.raw.socket.once('close', () => {
    world.dispatch.sessions.removeChannel(channel);
    world.changes.bump();
  });
}

const deprecated = (world: World, version: string): boolean =>
  world.settings.deprecatedVersions.some((refused) => refused === '*' || refused === version) ||
  isPast(world.settings.versionDeadlines[version]?.runtime);

const isPast = (time: string | undefined): boolean =>
  time !== undefined && Date.parse(time) <= Date.now();
