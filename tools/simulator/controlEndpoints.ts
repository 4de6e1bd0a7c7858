import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Control } from './control.ts';
import type { Fault } from './faults.ts';
import type { SimulatedToken, VersionDeadline, WebhookTarget } from './options.ts';
import type { JobSpec, ScopePath } from './types.ts';
import type { World } from './world.ts';

/**
 * The control API under `/_sim`, which offers {@link Control} to other processes. Requests and
 * responses are JSON; errors are 400 with `{error}`, and 404 for unknown ids.
 */
export function serveControl(server: FastifyInstance, world: World): void {
  const control = new Control(world);
  const route = (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    handler: (call: ControlCall) => unknown,
  ): void => {
    server.route({
      method,
      url: `/_sim/${path}`,
      handler: async (request: FastifyRequest, reply) => {
        const call = {
          params: request.params as Record<string, string>,
          query: request.query as Record<string, string>,
          body: request.body,
        };
        try {
          const result = await handler(call);
          return await (result === undefined
            ? reply.code(method === 'GET' ? 404 : 204).send()
            : reply.send(result));
        } catch (error) {
          return reply
            .code(400)
            .send({ error: error instanceof Error ? error.message : String(error) });
        }
      },
    });
  };
  route('GET', 'health', () => ({ url: world.url, version: world.changes.version }));
  route('GET', 'changes', async ({ query }) => ({
    version: await world.changes.next(
      Number(query['after'] ?? 0),
      Math.min(Number(query['timeoutMs'] ?? 25_000), 25_000),
    ),
  }));
  route('GET', 'jobs', () => control.jobs());
  route('POST', 'jobs', ({ body }) => control.queueJob(body as JobSpec));
  route('GET', 'jobs/:id', ({ params }) => control.job(Number(params['id'])));
  route('POST', 'jobs/:id/cancel', ({ params }) => control.cancelJob(Number(params['id'])));
  route('GET', 'runners', () => control.runners());
  route('DELETE', 'runners/:id', ({ params }) => ({
    removed: control.removeRunner(Number(params['id'])),
  }));
  route('GET', 'scale-sets', () => control.scaleSets());
  route('POST', 'scale-sets/:name/hold', ({ params, body }) =>
    control.holdScaleSet(params['name'] ?? '', (body as { owner: string }).owner),
  );
  route('POST', 'scale-sets/:name/evict', ({ params }) =>
    control.evictScaleSet(params['name'] ?? ''),
  );
  route('POST', 'scale-sets/:name/expire-token', ({ params }) =>
    control.expireScaleSetToken(params['name'] ?? ''),
  );
  route('DELETE', 'scale-sets/:name', ({ params }) => control.removeScaleSet(params['name'] ?? ''));
  route('POST', 'tenant-tokens/expire', () => control.expireTenantTokens());
  route('GET', 'faults', () => control.faults());
  route('POST', 'faults', ({ body }) => control.addFault(body as Fault));
  route('DELETE', 'faults', () => control.clearFaults());
  route('DELETE', 'faults/:id', ({ params }) => control.clearFaults(params['id']));
  route('GET', 'requests', () => control.requests());
  route('GET', 'requests/counts', () => control.requestCounts());
  route('DELETE', 'requests', () => control.resetRequests());
  route('POST', 'tokens', ({ body }) => control.addToken(body as SimulatedToken));
  route('POST', 'tokens/revoke', ({ body }) =>
    control.revokeToken((body as { token: string }).token),
  );
  route('PUT', 'credentials/:name/access', ({ params, body }) =>
    control.setAccess(
      params['name'] ?? '',
      body as { scopes?: ScopePath[]; permission?: 'admin' | 'read' },
    ),
  );
  route('PUT', 'credentials/:name/rate-limit', ({ params, body }) =>
    control.setRateLimit(
      params['name'] ?? '',
      body as { limit?: number; remaining?: number; resetInMs?: number },
    ),
  );
  route('PUT', 'webhook', ({ body }) =>
    control.setWebhook((body as WebhookTarget | null) ?? undefined),
  );
  route('PUT', 'deprecated-versions', ({ body }) =>
    control.setDeprecatedVersions(body as string[]),
  );
  route('PUT', 'version-deadlines', ({ body }) =>
    control.setVersionDeadlines(body as Record<string, VersionDeadline>),
  );
  route('PUT', 'busy-text', ({ body }) =>
    control.setBusyText((body as { text: 'current' | 'older' }).text),
  );
  route('GET', 'deliveries', () => control.deliveries());
  route('POST', 'deliveries/:id/redeliver', ({ params }) =>
    control.redeliver(Number(params['id'])),
  );
  route('POST', 'deliveries/release', () => control.releaseWebhooks());
}

interface ControlCall {
  params: Record<string, string>;
  query: Record<string, string>;
  body: unknown;
}
