import type { FastifyInstance } from 'fastify';
import type { Answer } from './responses.ts';
import * as answers from './responses.ts';
import { userJson } from './githubJson.ts';
import type { SimulatedApp, SimulatedInstallation } from './options.ts';
import { paginate } from './pages.ts';
import { serve, type Call } from './rest.ts';
import type { WebhookDelivery } from './types.ts';
import type { World } from './world.ts';

const PERMISSIONS = {
  actions: 'read',
  administration: 'write',
  checks: 'write',
  metadata: 'read',
  organization_self_hosted_runners: 'write',
  statuses: 'write',
};
const EVENTS = ['workflow_job'];
const SINCE = '2024-01-01T00:00:00Z';

/**
 * Serves the endpoints for a GitHub App's own token (https://docs.github.com/rest/apps/apps), and
 * webhook deliveries.
 */
export function serveAppEndpoints(server: FastifyInstance, world: World): void {
  const docs = `${answers.DOCS}/apps/apps`;
  const onApp = (
    method: 'GET' | 'POST',
    path: string,
    answer: (call: Call, app: SimulatedApp) => Answer,
  ): void =>
    serve(server, world, {
      method,
      path,
      auth: 'app',
      docs,
      answer: (call) => (call.app ? answer(call, call.app) : answers.badJwt()),
    });

  onApp('GET', '/app', (_call, app) => ({ status: 200, body: appJson(app) }));
  onApp('GET', '/app/installations', (call, app) => {
    const { items, headers } = paginate(app.installations, call);
    return {
      status: 200,
      body: items.map((installation) => installationJson(app, installation)),
      headers,
    };
  });
  onApp('GET', '/app/installations/{installation_id}', (call, app) =>
    one(app, ({ id }) => id === Number(call.params['installation_id']), docs),
  );
  const ofAccount = (call: Call, app: SimulatedApp): Answer => {
    const login = call.params['org'] ?? call.params['owner'] ?? call.params['username'] ?? '';
    return one(app, ({ account }) => account.toLowerCase() === login.toLowerCase(), docs);
  };
  onApp('GET', '/orgs/{org}/installation', ofAccount);
  onApp('GET', '/repos/{owner}/{repo}/installation', ofAccount);
  onApp('GET', '/users/{username}/installation', ofAccount);
  onApp('POST', '/app/installations/{installation_id}/access_tokens', (call, app) => {
    const installation = app.installations.find(
      ({ id }) => id === Number(call.params['installation_id']),
    );
    if (!installation) return answers.notFound(docs);
    const { token, expiresMs } = world.credentials.createInstallationToken(app, installation);
    const body = {
      token,
      expires_at: new Date(expiresMs).toISOString().replace(/\.\d+Z$/, 'Z'),
      permissions: PERMISSIONS,
      repository_selection: 'all',
    };
    return { status: 201, body };
  });

  const deliveryDocs = `${answers.DOCS}/webhooks`;
  for (const prefix of [
    '/app/hook',
    '/orgs/{org}/hooks/{hook_id}',
    '/repos/{owner}/{repo}/hooks/{hook_id}',
  ]) {
    const scope = prefix.startsWith('/orgs')
      ? { scope: ({ org }: Record<string, string>) => `orgs/${org}` }
      : {};
    const repoScope = prefix.startsWith('/repos')
      ? { scope: ({ owner, repo }: Record<string, string>) => `repos/${owner}/${repo}` }
      : {};
    const common = {
      docs: deliveryDocs,
      auth: prefix.startsWith('/app') ? ('app' as const) : ('token' as const),
      ...scope,
      ...repoScope,
    };
    const path = `${prefix}/deliveries`;
    serve(server, world, {
      ...common,
      method: 'GET',
      path,
      answer: (call) => listDeliveries(world, call),
    });
    serve(server, world, {
      ...common,
      method: 'GET',
      path: `${path}/{delivery_id}`,
      answer: (call) => {
        const delivery = sent(world).find(({ id }) => id === Number(call.params['delivery_id']));
        return delivery
          ? { status: 200, body: { ...deliveryJson(delivery), ...exchange(world, delivery) } }
          : answers.notFound(deliveryDocs);
      },
    });
    serve(server, world, {
      ...common,
      method: 'POST',
      path: `${path}/{delivery_id}/attempts`,
      answer: (call) =>
        world.webhooks.redeliver(Number(call.params['delivery_id']))
          ? { status: 202, body: {} }
          : answers.notFound(deliveryDocs),
    });
  }
}

function one(
  app: SimulatedApp,
  matches: (installation: SimulatedInstallation) => boolean,
  docs: string,
): Answer {
  const installation = app.installations.find(matches);
  return installation
    ? { status: 200, body: installationJson(app, installation) }
    : answers.notFound(docs);
}

/** Deliveries are paged by cursor, the newest first; `status` filters by success. */
function listDeliveries(world: World, call: Call): Answer {
  const perPage = Math.min(Number(call.query['per_page'] ?? 30) || 30, 100);
  const before = call.query['cursor'] === undefined ? Infinity : Number(call.query['cursor']);
  if (Number.isNaN(before))
    return {
      status: 400,
      body: { message: 'Bad Request', documentation_url: call.docs, status: '400' },
    };
  const wanted = call.query['status'];
  const failed = (delivery: WebhookDelivery): boolean =>
    delivery.status_code < 200 || delivery.status_code >= 400;
  const all = sent(world)
    .toReversed()
    .filter(
      (delivery) =>
        delivery.id < before &&
        (wanted === undefined || failed(delivery) === (wanted === 'failure')),
    );
  const items = all.slice(0, perPage);
  const last = items.at(-1);
  if (!last || items.length === all.length) return { status: 200, body: items.map(deliveryJson) };
  const next = new URL(call.url);
  next.searchParams.set('cursor', String(last.id));
  return {
    status: 200,
    body: items.map(deliveryJson),
    headers: { link: `<${next.toString()}>; rel="next"` },
  };
}

/** A lost one shows as failed: that is how its loss can be healed. */
const sent = (world: World): WebhookDelivery[] =>
  world.webhooks.deliveries().filter((delivery) => delivery.status !== 'pending' || delivery.lost);

function deliveryJson(delivery: WebhookDelivery): Record<string, unknown> {
  const {
    id,
    guid,
    delivered_at,
    redelivery,
    duration,
    status_code,
    event,
    action,
    repository_id,
  } = delivery;
  const status = delivery.lost ? 'failed to connect' : delivery.status;
  return {
    id,
    guid,
    delivered_at,
    redelivery,
    duration,
    status,
    status_code,
    event,
    action,
    installation_id: null,
    repository_id,
    throttled_at: null,
  };
}

function exchange(world: World, delivery: WebhookDelivery): Record<string, unknown> {
  return {
    url: world.webhooks.target?.url ?? '',
    request: {
      headers: { 'X-GitHub-Delivery': delivery.guid, 'X-GitHub-Event': delivery.event },
      payload: delivery.payload,
    },
    response: { headers: {}, payload: '' },
  };
}

function appJson(app: SimulatedApp): Record<string, unknown> {
  const slug = app.slug ?? `app-${app.id}`;
  return {
    id: app.id,
    slug,
    node_id: Buffer.from(`Integration${app.id}`).toString('base64'),
    client_id: app.clientId ?? `Iv1.${String(app.id).padStart(16, '0')}`,
    owner: userJson(app.installations[0]?.account ?? 'octo-org'),
    name: slug,
    description: '',
    external_url: 'https://example.com',
    html_url: `https://github.com/apps/${slug}`,
    created_at: SINCE,
    updated_at: SINCE,
    permissions: PERMISSIONS,
    events: EVENTS,
    installations_count: app.installations.length,
  };
}

function installationJson(
  app: SimulatedApp,
  installation: SimulatedInstallation,
): Record<string, unknown> {
  const api = 'https://api.github.com';
  const account = userJson(installation.account);
  return {
    id: installation.id,
    account,
    repository_selection: 'all',
    access_tokens_url: `${api}/app/installations/${installation.id}/access_tokens`,
    repositories_url: `${api}/installation/repositories`,
    html_url: `https://github.com/organizations/${installation.account}/settings/installations/${installation.id}`,
    app_id: app.id,
    app_slug: app.slug ?? `app-${app.id}`,
    target_id: account['id'],
    target_type: 'Organization',
    permissions: PERMISSIONS,
    events: EVENTS,
    created_at: SINCE,
    updated_at: SINCE,
    single_file_name: null,
    has_multiple_single_files: false,
    single_file_paths: [],
    suspended_by: null,
    suspended_at: null,
  };
}
