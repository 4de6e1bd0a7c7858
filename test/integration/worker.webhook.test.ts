import { randomUUID } from 'node:crypto';
import { sign } from '@octokit/webhooks-methods';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { fastify, type FastifyInstance, type LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { RUNNER_WORKFLOW, SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';
import { WEBHOOK_PATH, registerWebhook } from '../../worker/webhook.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const SECRET = "It's a Secret to Everybody";

await describeWithLab('the webhook', { temporal: true }, (lab) => {
  let connection: Connection;
  let server: FastifyInstance;
  let taskQueue: string;
  let outcomes: string[];
  let secrets: () => string[];
  let client: () => Client;

  beforeAll(async () => {
    connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
  });
  beforeEach(async () => {
    taskQueue = `test-${randomUUID().slice(0, 8)}`;
    outcomes = [];
    secrets = () => [SECRET];
    client = () => new Client({ connection });
    server = fastify({ bodyLimit: 1024 * 1024 });
    await registerWebhook(server, { client: () => client(), secrets: () => secrets(), taskQueue, logger: pino({ level: 'silent' }), onDelivery: (outcome) => outcomes.push(outcome) });
  });
  afterAll(async () => await connection.close());

  /** A runner's workflow that nobody works on: what it is told stays in its history. */
  async function startRunner(runnerName: string, queue = taskQueue): Promise<() => Promise<unknown[]>> {
    const handle = await client().workflow.start(RUNNER_WORKFLOW, {
      taskQueue: queue,
      workflowId: `runner-${randomUUID()}`,
      typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.name, value: runnerName }],
    });
    const listed = `WorkflowId = '${handle.workflowId}' AND RunnerName = '${runnerName}'`;
    await until('the workflow to be listed', async () => (await client().workflow.count(listed)).count === 1);
    return async () => {
      const { events } = await handle.fetchHistory();
      const signals = (events ?? []).map((event) => event.workflowExecutionSignaledEventAttributes).filter((signal) => signal !== null && signal !== undefined);
      return signals.map((signal) => [signal.signalName, JSON.parse(Buffer.from(signal.input?.payloads?.[0]?.data ?? '').toString())]);
    };
  }

  interface Delivery {
    readonly body?: unknown;
    readonly event?: string;
    readonly secret?: string;
    readonly headers?: Record<string, string>;
  }
  async function deliver({ body = {}, event = 'workflow_job', secret = SECRET, headers = {} }: Delivery): Promise<LightMyRequestResponse> {
    const payload = typeof body === 'string' ? body : JSON.stringify(body);
    const signature = { 'x-hub-signature-256': payload === '' ? 'sha256=' : await sign(secret, payload) };
    return await server.inject({
      method: 'POST',
      url: WEBHOOK_PATH,
      payload,
      headers: { 'content-type': 'application/json', 'x-github-event': event, 'x-github-delivery': randomUUID(), ...signature, ...headers },
    });
  }
  const job = (runnerName: string, action = 'in_progress'): object => ({ action, workflow_job: { id: 7, name: 'bäuen', runner_id: 3, runner_name: runnerName } });

  test('an event about a runner of ours is accepted once its workflow has it', async () => {
    const [signals, others] = [await startRunner('acme-1'), await startRunner('acme-2')];
    expect((await deliver({ body: job('acme-1') })).statusCode).toBe(202);
    expect(await signals()).toEqual([['ciEvent', { action: 'in_progress', jobId: 7, runnerId: 3, runnerName: 'acme-1', jobName: 'bäuen' }]]);
    expect(await others()).toEqual([]);
    expect(outcomes).toEqual(['accepted']);
  });

  test('the runners of another installation are not told', async () => {
    const signals = await startRunner('acme-3', `${taskQueue}-other`);
    expect((await deliver({ body: job('acme-3') })).statusCode).toBe(204);
    expect(await signals()).toEqual([]);
    expect(outcomes).toEqual(['other_runner']);
  });

  test.each<[number, string, string, Delivery]>([
    [200, 'ping', 'a ping', { event: 'ping', body: { zen: 'x' } }],
    [204, 'other_event', 'another event', { event: 'push', body: { ref: 'x' } }],
    [204, 'no_runner', 'a queued job', { body: { action: 'queued', workflow_job: { id: 7, runner_id: null, runner_name: null } } }],
    [204, 'other_runner', 'a runner of nobody', { body: job('nobody') }],
    [401, 'bad_signature', 'another secret', { secret: 'guess' }],
    [401, 'bad_signature', 'no signature', { headers: { 'x-hub-signature-256': '' } }],
    [401, 'bad_signature', 'the SHA-1 signature', { headers: { 'x-hub-signature-256': 'sha1=7d38cdd689735b008b3c702edd92eea23791c5f6' } }],
    [401, 'bad_signature', 'a signature that is none', { headers: { 'x-hub-signature-256': 'sha256=x' } }],
    [401, 'bad_signature', 'an empty body', { body: '' }],
    [400, 'malformed', 'a body that is no JSON', { body: 'payload=%7B%7D', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    [400, 'malformed', 'JSON that is no event', { body: { action: 'queued' } }],
  ])('%i %s: %s', async (status, outcome, _what, delivery) => {
    const response = await deliver(delivery);
    expect([response.statusCode, outcomes]).toEqual([status, [outcome]]);
    expect(response.body).not.toContain(SECRET);
  });

  test('a signature is over the bytes, not over what they mean', async () => {
    const body = '{ "zen":\t"\\u0041" }';
    expect((await deliver({ body, event: 'ping' })).statusCode).toBe(200);
    expect((await deliver({ body: '{"zen":"A"}', event: 'ping', headers: { 'x-hub-signature-256': await sign(SECRET, body) } })).statusCode).toBe(401);
  });

  test('while a secret is being rotated, both are good; a secret that cannot be read refuses all', async () => {
    secrets = () => ['new', SECRET];
    for (const secret of ['new', SECRET]) expect((await deliver({ event: 'ping', secret })).statusCode).toBe(200);
    secrets = () => {
      throw new Error('gone');
    };
    expect((await deliver({ event: 'ping' })).statusCode).toBe(401);
  });

  test('a body over the limit is refused before it is looked at', async () => {
    expect((await deliver({ body: 'x'.repeat(1024 * 1024 + 1) })).statusCode).toBe(413);
    expect(outcomes).toEqual([]);
  });

  test('while Temporal is away: 503, so that the delivery can be made again', async () => {
    const away = Connection.lazy({ address: '127.0.0.1:1', connectTimeout: '1s' });
    client = () => new Client({ connection: away });
    expect((await deliver({ body: job('acme-1') })).statusCode).toBe(503);
    client = () => {
      throw new Error('not connected to Temporal yet');
    };
    expect((await deliver({ body: job('acme-1') })).statusCode).toBe(503);
    expect(outcomes).toEqual(['temporal_unavailable', 'temporal_unavailable']);
    await away.close();
  });
});
