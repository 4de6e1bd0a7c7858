import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { fileURLToPath } from 'node:url';
import { sign } from '@octokit/webhooks-methods';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { fastify, type FastifyInstance, type LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { ScopeKind } from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';
import { webhookPath } from '../../worker/webhook/servers/deliveryFormats.ts';
import { registerSetMetrics } from '../../worker/webhook/setMetrics.ts';
import { SetDirectory } from '../../worker/webhook/setDirectory.ts';
import { SetStatuses } from '../../worker/webhook/setStatuses.ts';
import { registerWebhook, type WebhookOptions } from '../../worker/webhook/webhook.ts';
import {
  AT,
  queued,
  run,
  startToldRerun,
  startToldRunner,
  startToldSet,
  statusOf,
  type ToldRunner,
  type ToldSet,
} from '../support/demandSets.ts';
import { describeWithLab } from '../support/lab.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});
const SECRET = "It's a Secret to Everybody";
const logger = pino({ level: 'silent' });

await describeWithLab('the webhook', { temporal: true }, (lab) => {
  let connection: Connection;
  let server: FastifyInstance;
  let taskQueue: string;
  let outcomes: string[];
  let jobs: string[];
  let signaled: string[];
  let secrets: () => string[];
  let client: () => Client;

  beforeAll(async () => {
    connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
  });
  beforeEach(async () => {
    taskQueue = `test-${randomUUID().slice(0, 8)}`;
    [outcomes, jobs, signaled] = [[], [], []];
    secrets = () => [SECRET];
    client = () => new Client({ connection });
    server = await replica();
  });
  afterEach(async () => {
    await server.close();
    await terminateAll(new Client({ connection }), taskQueue);
  });
  afterAll(async () => await connection.close());

  async function replica(more: Partial<WebhookOptions> = {}): Promise<FastifyInstance> {
    const one = fastify();
    const ports = { client: () => client(), taskQueue, logger };
    await registerWebhook(one, {
      ...ports,
      sets: new SetDirectory(ports),
      secrets: () => secrets(),
      onDelivery: (outcome) => outcomes.push(outcome),
      onJob: (set, { event }) => jobs.push(`${set} ${event.action}`),
      onJobStarted: (workflowId) => signaled.push(workflowId),
      ...more,
    });
    return one;
  }

  const startRunner = async (name: string): Promise<ToldRunner> =>
    await startToldRunner(client(), taskQueue, name);
  /** Of a runner, for GitHub: no other test has it. */
  const nameOf = (base: string): string => `${base}-${taskQueue}-0123456789`;
  const ownSet = async (
    name: string,
    labels: string[],
    scope = 'acme',
    scopeKind: ScopeKind = 'organization',
  ): Promise<ToldSet> =>
    await startToldSet(client(), taskQueue, setId(name), {
      labels,
      scope,
      scopeKind,
      ciServer: 'github',
    });
  const setId = (name: string): string => `set-${name}-${taskQueue}`;

  type Delivery = Partial<
    Readonly<{
      body: unknown;
      event: string;
      secret: string;
      id: string;
      headers: Record<string, string>;
      to: FastifyInstance;
    }>
  >;
  async function deliver({
    body = {},
    event = 'workflow_job',
    secret = SECRET,
    id = randomUUID(),
    headers = {},
    to = server,
  }: Delivery): Promise<LightMyRequestResponse> {
    const payload = typeof body === 'string' ? body : JSON.stringify(body);
    const signature = {
      'x-hub-signature-256': payload === '' ? 'sha256=' : await sign(secret, payload),
    };
    return await to.inject({
      method: 'POST',
      url: webhookPath('github'),
      payload,
      headers: {
        'content-type': 'application/json',
        'x-github-event': event,
        'x-github-delivery': id,
        ...signature,
        ...headers,
      },
    });
  }

  test('an event about a runner of Holdfast is accepted after its workflow has it', async () => {
    const [runner, other] = [
      await startRunner(nameOf('acme-1')),
      await startRunner(nameOf('acme-2')),
    ];
    expect((await deliver({ body: run(nameOf('acme-1')) })).statusCode).toBe(202);
    expect(await runner.told()).toEqual([
      {
        action: 'in_progress',
        jobId: '7',
        runAttempt: 1,
        at: Date.parse(AT),
        runnerId: '3',
        repository: 'acme/app',
        runnerName: nameOf('acme-1'),
        jobName: 'bäuen',
      },
    ]);
    expect(await other.told()).toEqual([]);
    expect(outcomes).toEqual(['accepted']);
    expect(signaled).toEqual([workflowIdFromRunnerName(nameOf('acme-1'))]);
  });

  test("a runner with a name like Holdfast's that does not exist is ignored; sets of other installations get nothing", async () => {
    const runner = await startRunner(nameOf('acme-3'));
    await runner.end();
    const set = await startToldSet(client(), `${taskQueue}-other`, setId('other'), {
      labels: ['none'],
      scope: 'acme',
      scopeKind: 'organization',
      ciServer: 'github',
    });
    for (const name of [
      nameOf('acme-3'),
      nameOf('acme-4'),
      `other-${taskQueue}-aaaaaaaaaa-0123456789`,
      'GitHub Actions 7',
      `../${nameOf('acme-3')}`,
    ])
      expect((await deliver({ body: run(name) })).statusCode).toBe(204);
    expect(await runner.told()).toEqual([]);
    expect(signaled).toEqual([]);
    expect(await set.events()).toEqual([]);
    expect(new Set(outcomes)).toEqual(new Set(['no_match']));
  });

  test('a queued job is accepted after the set that will serve it has it', async () => {
    const [plain, gpu] = [
      await ownSet('plain', ['self-hosted', 'linux']),
      await ownSet('gpu', ['self-hosted', 'linux', 'gpu']),
    ];
    expect((await deliver({ body: queued(1, ['self-hosted', 'Linux']) })).statusCode).toBe(202);
    expect((await deliver({ body: queued(2, ['GPU']) })).statusCode).toBe(202);
    expect(await plain.batches()).toEqual([
      [
        {
          action: 'queued',
          jobId: '1',
          runAttempt: 1,
          repository: 'acme/app',
          labels: ['self-hosted', 'linux'],
          at: Date.parse(AT),
        },
      ],
    ]);
    expect((await gpu.events()).map(({ jobId }) => jobId)).toEqual(['2']);
  });

  test('the set whose runner runs the job gets it too, and its end, after the runner has ended', async () => {
    const [chosen, own] = [await ownSet('a', ['linux']), await ownSet('b', ['linux', 'big'])];
    const name = `b-${taskQueue}-aaaaaaaaaa-0123456789`;
    const runner = await startRunner(name);
    expect((await deliver({ body: run(name, 'in_progress', ['linux']) })).statusCode).toBe(202);
    await runner.end();
    expect((await deliver({ body: run(name, 'completed', ['linux']) })).statusCode).toBe(202);
    for (const set of [chosen, own])
      expect((await set.events()).map(({ action, runnerName }) => [action, runnerName])).toEqual([
        ['in_progress', name],
        ['completed', name],
      ]);
    expect(jobs).toEqual([`b-${taskQueue} in_progress`, `b-${taskQueue} completed`]);
  });

  test('the rerun of a lost job gets its end, and no other event', async () => {
    await ownSet('a', ['linux']);
    const name = `a-${taskQueue}-aaaaaaaaaa-0123456789`;
    const rerun = await startToldRerun(client(), taskQueue, name);
    const events: [action: string, conclusion?: string][] = [
      ['in_progress'],
      ['completed', 'success'],
      ['completed', 'failure'],
      ['completed', 'cancelled'],
    ];
    for (const [action, conclusion] of events)
      expect((await deliver({ body: run(name, action, ['linux'], conclusion) })).statusCode).toBe(
        202,
      );
    expect(await rerun.told()).toMatchObject([
      { action: 'completed', jobId: '7', conclusion: 'failure' },
      { action: 'completed', jobId: '7', conclusion: 'cancelled' },
    ]);
  });

  test('a set created just now is found; an ended one gets nothing, and its jobs go to the next', async () => {
    const first = await ownSet('first', ['linux']);
    expect((await deliver({ body: queued(1, ['linux']) })).statusCode).toBe(202);
    const second = await ownSet('second', ['linux', 'arm64']);
    await until(
      'the new set to be seen',
      async () => (await deliver({ body: queued(2, ['arm64']) })).statusCode === 202,
    );
    await first.handle.terminate();
    await until(
      'the end to be listed',
      async () =>
        (
          await client().workflow.count(
            `WorkflowId = '${first.handle.workflowId}' AND ExecutionStatus = 'Terminated'`,
          )
        ).count === 1,
    );
    expect((await deliver({ body: queued(3, ['linux']) })).statusCode).toBe(202);
    expect((await second.events()).map(({ jobId }) => jobId)).toEqual(['2', '3']);
  });

  test('a set without a memo is queried; while it does not respond, no event counts as unrelated', async () => {
    await startToldSet(
      client(),
      taskQueue,
      setId('asked'),
      undefined,
      statusOf('asked', { ciServer: 'github', labels: ['linux', 'asked'] }),
    );
    expect((await deliver({ body: queued(1, ['asked']) })).statusCode).toBe(503);
    expect((await deliver({ body: queued(1, ['elsewhere']) })).statusCode).toBe(503);
    const native = await NativeConnection.connect({ address: lab.temporal?.address ?? '' });
    const worker = await Worker.create({
      connection: native,
      taskQueue,
      workflowsPath: fileURLToPath(new URL('../support/demandSet/workflows.ts', import.meta.url)),
    });
    await worker.runUntil(async () => {
      await until(
        'the set to answer',
        async () => (await deliver({ body: queued(1, ['asked']) })).statusCode === 202,
      );
      expect((await deliver({ body: queued(2, ['elsewhere']) })).statusCode).toBe(204);
      await until('the gauge', async () =>
        (await scrape(new SetDirectory({ client, taskQueue, logger }))).includes(
          'holdfast_set_queued_jobs{set="asked",scope="acme"} 1',
        ),
      );
    });
    await native.close();
    expect(outcomes.at(-1)).toBe('no_match');
  });

  async function scrape(sets: SetDirectory): Promise<string> {
    const registry = new Registry();
    const statuses = new SetStatuses(sets, logger);
    registerSetMetrics(registry, async () => await statuses.get());
    return await registry.metrics();
  }

  test('a scrape never fails because of the sets: not without a worker, not without Temporal', async () => {
    await ownSet('silent', ['linux']);
    expect(await scrape(new SetDirectory({ client, taskQueue, logger }))).not.toContain(
      'set="silent',
    );
    const nobody = (): Client => {
      throw new Error('not connected to Temporal yet');
    };
    expect(await scrape(new SetDirectory({ client: nobody, taskQueue, logger }))).toContain(
      '# TYPE holdfast_set_desired_runners gauge',
    );
  });

  test('a repeated delivery is accepted and not processed; the same ID with another body is', async () => {
    const set = await ownSet('a', ['linux']);
    const id = randomUUID();
    for (let again = 0; again < 3; again++)
      expect((await deliver({ body: queued(1, ['linux']), id })).statusCode).toBe(202);
    expect((await deliver({ body: queued(2, ['linux']), id })).statusCode).toBe(202);
    expect((await set.events()).map(({ jobId }) => jobId)).toEqual(['1', '2']);
    expect(outcomes).toEqual(['accepted', 'duplicate', 'duplicate', 'accepted']);
  });

  test('two replicas choose the same set for a job', async () => {
    const [a, b] = [await ownSet('a', ['linux', 'x']), await ownSet('b', ['linux', 'y'])];
    const other = await replica();
    const id = randomUUID();
    for (const to of [server, other, server])
      expect((await deliver({ body: queued(1, ['linux']), id, to })).statusCode).toBe(202);
    // Which of the two is for the hash of their names to say.
    const told = await Promise.all(
      [a, b].map(async (set) => (await set.events()).map(({ jobId }) => jobId)),
    );
    expect(told.toSorted((one, more) => one.length - more.length)).toEqual([[], ['1', '1']]);
    await other.close();
  });

  test('10,000 deliveries are a few signals, and none is lost', async () => {
    const [a, b] = [await ownSet('a', ['linux']), await ownSet('b', ['arm64'])];
    const all = Array.from({ length: 10_000 }, (_, index) =>
      queued(index + 1, [index % 10 === 0 ? 'arm64' : 'linux']),
    );
    const waiting = all.values();
    let refusals = 0;
    // A busy machine may miss the deadline of a delivery, which GitHub would send again then.
    const sendUntilAccepted = async (body: object): Promise<void> => {
      const id = randomUUID();
      let status = (await deliver({ body, id })).statusCode;
      for (; status === 503; status = (await deliver({ body, id })).statusCode) refusals++;
      expect(status).toBe(202);
    };
    const sender = async (): Promise<void> => {
      for (const body of waiting) await sendUntilAccepted(body);
    };
    await Promise.all(Array.from({ length: 500 }, sender));
    const idsOf = async (set: ToldSet): Promise<number[]> =>
      (await set.events()).map(({ jobId }) => Number(jobId));
    const [linux, arm64] = [await idsOf(a), await idsOf(b)];
    const distinct = new Set([...linux, ...arm64]);
    expect([...distinct].toSorted((one, other) => one - other)).toEqual(
      all.map((_, index) => index + 1),
    );
    expect(new Set(arm64).size).toBe(1_000);
    // Only a delivery that was sent again may be processed again.
    expect(linux.length + arm64.length).toBeLessThanOrEqual(all.length + refusals);
    expect((await a.batches()).length).toBeLessThan(300);
  });

  test.each<[number, string, string, Delivery]>([
    [200, 'ping', 'a ping', { event: 'ping', body: { zen: 'x' } }],
    [204, 'other_event', 'another event', { event: 'push', body: { ref: 'refs/heads/main' } }],
    [204, 'other_action', 'another action', { body: { ...run('acme-1'), action: 'waiting' } }],
    [204, 'no_match', 'a job that no set covers', { body: queued(7, ['ubuntu-latest']) }],
    [204, 'no_labels', 'a job without labels', { body: queued(7, []) }],
    [204, 'no_match', 'a repository of nobody', { body: queued(7, ['linux'], 'someone/else') }],
    [204, 'no_match', 'a runner of nobody', { body: run('nobody') }],
    [401, 'bad_signature', 'another secret', { secret: 'guess' }],
    [
      401,
      'bad_signature',
      'the SHA-1 signature',
      { headers: { 'x-hub-signature-256': 'sha1=7d38cdd689735b008b3c702edd92eea23791c5f6' } },
    ],
    [401, 'bad_signature', 'an empty body', { body: '' }],
    [
      401,
      'bad_signature',
      'bytes that are no text',
      { body: '\uD800', headers: { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` } },
    ],
    [
      415,
      'malformed',
      'a form',
      { body: 'payload=%7B%7D', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ],
    [400, 'malformed', 'a body that is no JSON', { body: 'payload=%7B%7D' }],
    [
      422,
      'expired',
      'an event of last week',
      {
        body: {
          ...queued(7, ['linux']),
          workflow_job: {
            id: 7,
            labels: ['linux'],
            created_at: new Date(Date.now() - 7 * 86_400_000).toISOString(),
          },
        },
      },
    ],
    [400, 'malformed', 'JSON that is no event', { body: { action: 'queued' } }],
    [400, 'malformed', 'labels that are none', { body: queued(7, [{} as string]) }],
  ])('%i %s: %s', async (status, outcome, _what, delivery) => {
    const set = await ownSet('a', ['linux'], 'acme/app', 'repository');
    const response = await deliver(delivery);
    expect([response.statusCode, outcomes]).toEqual([status, [outcome]]);
    expect(response.body).not.toContain(SECRET);
    expect(await set.events()).toEqual([]);
  });

  test('a signature covers the bytes, not their meaning', async () => {
    const body = '{ "zen":\t"\\u0041" }';
    expect((await deliver({ body, event: 'ping' })).statusCode).toBe(200);
    expect(
      (
        await deliver({
          body: '{"zen":"A"}',
          event: 'ping',
          headers: { 'x-hub-signature-256': await sign(SECRET, body) },
        })
      ).statusCode,
    ).toBe(401);
  });

  test('during a rotation of the secret both are valid; an unreadable secret rejects all', async () => {
    secrets = () => ['new', SECRET];
    for (const secret of ['new', SECRET])
      expect((await deliver({ event: 'ping', secret })).statusCode).toBe(200);
    secrets = () => {
      throw new Error('gone');
    };
    expect((await deliver({ event: 'ping' })).statusCode).toBe(401);
  });

  test('a body over 1 MiB is rejected with the reason; one of 1 MiB is read', async () => {
    await ownSet('a', ['linux']);
    const body = JSON.stringify({ ...queued(1, ['linux']), padding: '' });
    const full = `${body.slice(0, -2)}${'x'.repeat(1024 * 1024 - body.length)}"}`;
    expect((await deliver({ body: full })).statusCode).toBe(202);
    const refused = await deliver({ body: `${full} ` });
    expect([refused.statusCode, refused.json()]).toEqual([
      413,
      { message: expect.stringContaining('1024 KiB') },
    ]);
    expect(outcomes).toEqual(['accepted', 'too_large']);
  });

  test("over real HTTP, in chunks and with a proxy's headers; headers have a limit", async () => {
    const set = await ownSet('a', ['linux']);
    const url = new URL(webhookPath('github'), await server.listen({ host: '127.0.0.1', port: 0 }));
    const body = JSON.stringify(queued(1, ['linux']));
    const post = async (headers: Record<string, string>): Promise<number | undefined> =>
      await new Promise((resolve, reject) => {
        const sent = httpRequest(url, { method: 'POST', headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on('error', reject);
        for (const piece of body.match(/.{1,50}/g) ?? []) sent.write(piece);
        sent.end();
      });
    const headers = {
      'x-hub-signature-256': await sign(SECRET, body),
      'x-github-event': 'workflow_job',
      'x-github-delivery': randomUUID(),
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-proto': 'https',
      forwarded: 'for=203.0.113.7',
      via: '1.1 edge',
    };
    expect(await post({ ...headers, 'content-type': 'application/json; charset=utf-8' })).toBe(202);
    expect(await post(headers)).toBe(415);
    expect(await post({ ...headers, 'x-padding': 'x'.repeat(20_000) })).toBe(431);
    expect((await set.events()).map(({ jobId }) => jobId)).toEqual(['1']);
  });

  test('too many concurrent deliveries are rejected for a retry', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const busy = await replica({
      maxInFlight: 2,
      secrets: () => [SECRET],
      sets: {
        route: async () => (await promise, { chosen: undefined, running: new Set() }),
      } as unknown as SetDirectory,
    });
    const first = [1, 2].map(
      async (id) => await deliver({ body: queued(id, ['linux']), to: busy }),
    );
    await until(
      'a refusal',
      async () => (await deliver({ body: queued(3, ['linux']), to: busy })).statusCode === 503,
    );
    expect(outcomes).toContain('overloaded');
    resolve();
    expect((await Promise.all(first)).map(({ statusCode }) => statusCode)).toEqual([204, 204]);
    expect((await deliver({ body: queued(3, ['linux']), to: busy })).statusCode).toBe(204);
    await busy.close();
  });

  test('while Temporal is unreachable: 503, so that the delivery can be repeated; its set gets it afterwards, repeated or not', async () => {
    const set = await ownSet('a', ['linux']);
    // Without the client's own retries, of which one would be under way when this is closed: it throws where nobody catches.
    const away = Connection.lazy({
      address: '127.0.0.1:1',
      connectTimeout: '1s',
      interceptors: [],
    });
    client = () => new Client({ connection: away });
    const id = randomUUID();
    expect((await deliver({ body: run(nameOf('acme-1')) })).statusCode).toBe(503);
    expect(
      (
        await Promise.all(
          ['linux', 'linux', 'x'].map(
            async (label) => await deliver({ body: queued(1, [label]), id }),
          ),
        )
      ).map(({ statusCode }) => statusCode),
    ).toEqual([503, 503, 503]);
    client = () => {
      throw new Error('not connected to Temporal yet');
    };
    expect((await deliver({ body: queued(1, ['linux']), id })).statusCode).toBe(503);
    expect(new Set(outcomes)).toEqual(new Set(['temporal_unavailable']));
    client = () => new Client({ connection });
    await until(
      'it to be accepted again',
      async () => (await deliver({ body: queued(1, ['linux']), id })).statusCode === 202,
    );
    // Two where Temporal was slow to take one that is answered 503 by then.
    expect(new Set((await set.events()).map(({ jobId }) => jobId))).toEqual(new Set(['1']));
    client = () => new Client({ connection: away });
    expect((await deliver({ body: queued(2, ['linux']) })).statusCode).toBe(503);
    client = () => new Client({ connection });
    await until('the set to be told', async () =>
      (await set.events()).some(({ jobId }) => jobId === '2'),
    );
    await away.close();
  });
});
