import { createHmac } from 'node:crypto';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import type { SetDirectory } from '../../../worker/webhook/setDirectory.ts';
import { webhookPath } from '../../../worker/webhook/servers/deliveryFormats.ts';
import {
  createWebhookServer,
  type WebhookServerOptions,
} from '../../../worker/webhook/webhookServer.ts';
import { until } from '../../support/until.ts';

const SECRET = 'secret';
/** A time that is short enough for a test and long enough for a busy machine. */
const TIMEOUTS = { headersMs: 500, requestMs: 1_000, lingerMs: 100, checkMs: 100 };
const BODY = JSON.stringify({
  action: 'queued',
  workflow_job: { id: 1, labels: ['linux'] },
  repository: { full_name: 'acme/app' },
});

describe("the webhook's server", () => {
  let server: FastifyInstance;
  let outcomes: string[];
  let sockets: Socket[];
  /** The response of Temporal to a signal. */
  let accept: () => Promise<void>;

  beforeEach(() => {
    [outcomes, sockets, accept] = [[], [], async () => undefined];
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });

  async function start(more: Partial<WebhookServerOptions> = {}): Promise<void> {
    const told = outcomes; // of this server: one that was closed may still have something to tell
    const client = {
      withDeadline: async (_deadline: number, run: () => Promise<unknown>) => await run(),
      workflow: { getHandle: () => ({ signal: async () => await accept() }) },
    };
    const sets = {
      route: async () => ({ chosen: 'set-linux', running: new Set(['set-linux']) }),
    } as unknown as SetDirectory;
    server = await createWebhookServer({
      client: () => client as unknown as Client,
      secrets: () => [SECRET],
      taskQueue: 'holdfast',
      sets,
      logger: pino({ level: 'silent' }),
      onDelivery: (outcome) => told.push(outcome),
      timeouts: TIMEOUTS,
      ...more,
    });
    await server.listen({ host: '127.0.0.1', port: 0 });
  }

  interface Connection {
    /** All response data so far. */
    response(): string;
    isClosed(): boolean;
    send(bytes: string | Buffer): void;
  }
  async function connection(): Promise<Connection> {
    const socket = connect((server.server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    let response = '';
    let isClosed = false;
    socket.on('data', (bytes) => (response += bytes.toString()));
    socket.on('error', () => undefined).on('close', () => (isClosed = true));
    await until('the connection', () => !socket.connecting);
    return {
      response: () => response,
      isClosed: () => isClosed,
      send: (bytes) => void socket.write(bytes),
    };
  }
  const signature = `sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`;
  const head = (
    more: Readonly<Record<string, string>> = {},
    start = `POST ${webhookPath('github')}`,
  ): string => {
    const headers = {
      host: 'hooks',
      'content-type': 'application/json',
      'content-length': String(BODY.length),
      'x-github-event': 'workflow_job',
      'x-github-delivery': 'a',
      'x-hub-signature-256': signature,
      ...more,
    };
    return `${start} HTTP/1.1\r\n${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`;
  };
  async function delivered(): Promise<string> {
    const github = await connection();
    github.send(head({ 'x-github-delivery': String(Math.random()).slice(2) }) + BODY);
    await until('the answer', () => github.response() !== '' || github.isClosed());
    return github.response().slice(9, 12);
  }

  test.each<[string, string, string]>([
    ['another path', head({}, 'POST /'), '404'],
    ['an unknown CI server', head({}, 'POST /webhooks/gitlab'), '404'],
    ['the path of the metrics', head({}, 'GET /metrics'), '404'],
    ['another method', head({}, `PUT ${webhookPath('github')}`), '404'],
    ['no signature', head({ 'x-hub-signature-256': '' }), '401'],
    ['a body of a gigabyte', head({ 'content-length': String(2 ** 30) }), '413'],
    ['a form', head({ 'content-type': 'application/x-www-form-urlencoded' }), '415'],
  ])(
    '%s is rejected before the body is sent, and its connection is closed if the body does not arrive',
    async (_what, bytes, status) => {
      await start();
      const one = await connection();
      one.send(bytes);
      await until('the refusal', () => one.response().startsWith(`HTTP/1.1 ${status} `));
      await until('the end of the connection', () => one.isClosed() || bytes.startsWith('GET'));
    },
  );

  test('a request for an unknown CI server gets the list of the known ones, and is not counted', async () => {
    await start();
    const one = await connection();
    one.send(head({}, 'POST /webhooks/gitlab') + BODY);
    await until('the answer', () => one.response().includes('\r\n\r\n'));
    expect(JSON.parse(one.response().split('\r\n\r\n')[1] ?? '')).toMatchObject({
      servers: ['github', 'gitea'],
    });
    expect(outcomes).toEqual([]);
  });

  test('a new connection closes the one that has waited longest for its request', async () => {
    await start({ maxConnections: 3 });
    const slow = [await connection(), await connection(), await connection()];
    for (const one of slow) one.send(head());
    expect(await delivered()).toBe('202');
    await until('the first connection to close', () => slow[0]?.isClosed() === true);
    expect(await delivered()).toBe('202');
    await until(
      'the delivery before, which waits since, to have made room, or the second',
      () => slow.filter((one) => one.isClosed()).length === 2,
    );
    slow[2]?.send(BODY);
    await until(
      'the last, which was in time',
      () => slow[2]?.response().startsWith('HTTP/1.1 202 ') === true,
    );
    expect(outcomes.filter((outcome) => outcome === 'incomplete')).toHaveLength(2);
  });

  test('a delivery that waits for Temporal keeps its connection despite new ones', async () => {
    await start({ maxConnections: 2 });
    const { promise, resolve } = Promise.withResolvers<void>();
    let asked = false;
    accept = async () => {
      asked = true;
      await promise;
    };
    const github = await connection();
    github.send(head() + BODY);
    await until('the signal to Temporal', () => asked);
    const others = [await connection(), await connection(), await connection()];
    await until('the first connection to close', () => others[0]?.isClosed() === true);
    resolve();
    await until('the answer', () => github.response().startsWith('HTTP/1.1 202 '));
  });

  test('when the budget of bodies is exhausted, the oldest delivery is rejected with a retryable status', async () => {
    await start({ bodyBudget: 100 * 1_024 });
    const slow = await connection();
    slow.send(head({ 'content-length': '1000000' }) + 'x'.repeat(60 * 1_024));
    const next = await connection();
    next.send(head({ 'content-length': '1000000' }) + 'x'.repeat(60 * 1_024));
    await until('the refusal', () => slow.response() !== '' || next.response() !== '');
    const refused = [slow, next].map((one) => one.response()).find((answer) => answer !== '');
    expect(refused).toMatch(/^HTTP\/1\.1 503 /);
    expect(refused).toMatch(/^retry-after: 10\r$/m);
    expect(await delivered()).toBe('202');
    expect(outcomes).toEqual(['overloaded', 'accepted']);
  });

  test("by default its limits are below GitHub's timeout", async () => {
    await start({ timeouts: undefined } as never);
    expect(server.server).toMatchObject({ headersTimeout: 5_000, requestTimeout: 10_000 });
  });

  test('a missing head or body is waited for only some seconds', async () => {
    await start();
    const silent = await connection();
    const slow = await connection();
    slow.send(`${head()}${BODY.slice(1)}`);
    await until('both to be closed', () => silent.isClosed() && slow.isClosed());
    expect(outcomes).toEqual(['incomplete']);
  });

  test('its shutdown waits for deliveries that wait for Temporal, and for no other connection', async () => {
    await start();
    const { promise, resolve } = Promise.withResolvers<void>();
    let asked = false;
    accept = async () => {
      asked = true;
      await promise;
    };
    const [silent, slow, github] = [await connection(), await connection(), await connection()];
    slow.send(head());
    github.send(head() + BODY);
    await until('the signal to Temporal', () => asked);
    const closed = server.close();
    await until('the other connections to close', () => silent.isClosed() && slow.isClosed());
    resolve();
    await until('the answer', () => github.response().startsWith('HTTP/1.1 202 '));
    await closed;
  });
});
