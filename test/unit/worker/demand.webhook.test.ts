import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { fastify, type FastifyInstance } from 'fastify';
import type { SetDirectory } from '../../../worker/webhook/setDirectory.ts';
import type { JobDelivery } from '../../../worker/webhook/jobDelivery.ts';
import type { DeliveryFormat } from '../../../worker/webhook/servers/deliveryFormat.ts';
import { webhookPath } from '../../../worker/webhook/servers/deliveryFormats.ts';
import { registerWebhook } from '../../../worker/webhook/webhook.ts';
import { until } from '../../support/until.ts';

const SECRET = 'secret';
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe('repeated deliveries', () => {
  let server: FastifyInstance;
  let outcomes: string[];
  let signals: number;
  /** The response of Temporal to a signal. */
  let accept: () => Promise<void>;

  beforeEach(async () => {
    [outcomes, signals, accept] = [[], 0, async () => undefined];
    const signal = async (): Promise<void> => {
      signals++;
      await accept();
    };
    const client = {
      withDeadline: async (_deadline: number, run: () => Promise<unknown>) => await run(),
      workflow: { getHandle: () => ({ signal }) },
    };
    const sets = { route: async () => ({ chosen: 'set-linux', running: new Set(['set-linux']) }) };
    server = fastify();
    await registerWebhook(server, {
      client: () => client as unknown as Client,
      secrets: () => [SECRET],
      taskQueue: 'holdfast',
      sets: sets as unknown as SetDirectory,
      logger: quiet,
      onDelivery: (outcome) => outcomes.push(outcome),
    });
  });
  afterEach(async () => await server.close());

  async function deliver(id: string, event = 'workflow_job'): Promise<number> {
    const payload = JSON.stringify({
      action: 'queued',
      workflow_job: { id: 1, labels: ['linux'] },
      repository: { full_name: 'acme/app' },
    });
    const headers = {
      'content-type': 'application/json',
      'x-github-event': event,
      'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(payload).digest('hex')}`,
      'x-github-delivery': id,
    };
    return (await server.inject({ method: 'POST', url: webhookPath('github'), payload, headers }))
      .statusCode;
  }

  test('are sent to the set once', async () => {
    expect([await deliver('a'), await deliver('a'), await deliver('b')]).toEqual([202, 202, 202]);
    expect(outcomes).toEqual(['accepted', 'duplicate', 'accepted']);
    expect(signals).toBe(2);
  });

  test('that arrive together are sent to the set once', async () => {
    expect(await Promise.all([deliver('a'), deliver('a'), deliver('a')])).toEqual([202, 202, 202]);
    expect(outcomes).toEqual(['accepted', 'duplicate', 'duplicate']);
    expect(signals).toBe(1);
  });

  test.each([
    [
      'accepted',
      (sent: PromiseWithResolvers<void>) => sent.resolve(),
      202,
      ['ping', 'accepted', 'duplicate'],
    ],
    [
      'failed',
      (sent: PromiseWithResolvers<void>) => sent.reject(new Error('down')),
      503,
      ['ping', 'temporal_unavailable', 'temporal_unavailable'],
    ],
  ])('get the result of the running one, which is %s', async (_what, end, status, expected) => {
    const sent = Promise.withResolvers<void>();
    accept = async () => await sent.promise;
    const first = deliver('a');
    await until('the first to be under way', () => signals === 1);
    const second = deliver('a');
    expect(await deliver('c', 'ping')).toBe(200); // what came before it has come as far as it can
    end(sent);
    expect(await Promise.all([first, second])).toEqual([status, status]);
    expect([outcomes, signals]).toEqual([expected, 1]);
  });

  test('of a failed one are retried', async () => {
    accept = async () => await Promise.reject(new Error('down'));
    expect(await deliver('a')).toBe(503);
    accept = async () => undefined;
    expect(await deliver('a')).toBe(202);
    expect(outcomes).toEqual(['temporal_unavailable', 'accepted']);
  });
});

test('a second CI server needs only its format', async () => {
  const other: DeliveryFormat = {
    server: 'other' as 'github',
    rejectHeaders: () => undefined,
    deliveryId: () => 'a',
    repetitionKey: () => 'a',
    span: () => ({ name: 'other', attributes: {} }),
    isSigned: ({ token }, _body, secrets) => secrets.includes(String(token)),
    read: (_headers, body) => ({
      ciServer: 'other' as 'github',
      event: {
        action: 'queued',
        jobId: '1',
        runAttempt: 1,
        repository: body.toString(),
        labels: ['linux'],
        at: 0,
      },
    }),
  };
  const routed: string[] = [];
  const sets = {
    route: async ({ event }: JobDelivery) => {
      routed.push(event.repository);
      return { chosen: undefined, running: new Set() };
    },
  };
  const client = {
    withDeadline: async (_deadline: number, run: () => Promise<unknown>) => await run(),
  };
  const server = fastify();
  await registerWebhook(server, {
    client: () => client as unknown as Client,
    secrets: () => [SECRET],
    taskQueue: 'holdfast',
    sets: sets as unknown as SetDirectory,
    logger: quiet,
    formats: [other],
  });
  const post = async (path: string, token = SECRET): Promise<number> =>
    (
      await server.inject({
        method: 'POST',
        url: path,
        payload: 'acme/app',
        headers: { 'content-type': 'application/json', token },
      })
    ).statusCode;
  expect([
    await post('/webhooks/other'),
    await post('/webhooks/other', 'wrong'),
    await post('/webhooks/github'),
  ]).toEqual([204, 401, 404]);
  expect(routed).toEqual(['acme/app']);
  await server.close();
});
