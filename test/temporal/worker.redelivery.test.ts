import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { fastify, type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import {
  createCiServers,
  parseCredentials,
  type Credentials,
} from '../../activities/ciServers/index.ts';
import type { CiServers } from '../../activities/ports/ciServer.ts';
import { freePort } from '../../tools/lab/ports.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { startRedelivery } from '../../worker/webhook/redelivery.ts';
import { SetDirectory } from '../../worker/webhook/setDirectory.ts';
import { webhookPath } from '../../worker/webhook/servers/deliveryFormats.ts';
import { registerWebhook } from '../../worker/webhook/webhook.ts';
import { startToldSet, type ToldSet } from '../support/demandSets.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const SECRET = 'secret of the app';
const logger = pino({ level: 'silent' });
const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
});
process.env['TEST_REDELIVERY_KEY'] = keys.privateKey;
process.env['TEST_REDELIVERY_TOKEN'] = 'ghp_simulator';

await describeWithLab('redelivery', { temporal: true }, (lab) => {
  let connection: Connection;
  let simulator: Simulator;
  let credentials: Credentials;
  let ciServers: CiServers & { close(): Promise<void> };
  let taskQueue: string;
  let set: ToldSet;
  /** Of the receiver, when it is there. */
  let port: number;
  const servers: FastifyInstance[] = [];

  beforeAll(async () => {
    connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
  });
  beforeEach(async () => {
    taskQueue = `test-${randomUUID().slice(0, 8)}`;
    port = await freePort();
    simulator = await startSimulator({
      apps: [
        {
          id: 12,
          publicKey: keys.publicKey,
          installations: [
            { id: 34, account: 'acme' },
            { id: 35, account: 'beta' },
          ],
        },
      ],
      webhook: { url: `http://127.0.0.1:${port}${webhookPath('github')}`, secret: SECRET },
    });
    const app = {
      type: 'app',
      appId: 12,
      privateKeyEnv: 'TEST_REDELIVERY_KEY',
      apiUrl: simulator.url,
    };
    credentials = parseCredentials({
      token: { type: 'pat', tokenEnv: 'TEST_REDELIVERY_TOKEN', apiUrl: simulator.url },
      acme: { ...app, installationId: 34 },
      beta: { ...app, installationId: 35 },
    });
    ciServers = createCiServers(credentials);
    set = await startToldSet(new Client({ connection }), taskQueue, `set-${taskQueue}`, {
      labels: ['linux'],
      scope: 'acme',
      scopeKind: 'organization',
      ciServer: 'github',
    });
  });
  afterEach(async () => {
    await ciServers.close();
    for (const server of servers.splice(0)) await server.close();
    await simulator.stop();
  });
  afterAll(async () => await connection.close());

  async function receive(): Promise<void> {
    const server = fastify();
    const ports = { client: () => new Client({ connection }), taskQueue, logger };
    await registerWebhook(server, {
      ...ports,
      sets: new SetDirectory(ports),
      secrets: () => [SECRET],
    });
    servers.push(server);
    await server.listen({ host: '127.0.0.1', port });
  }
  const queue = (count: number): number[] =>
    Array.from(
      { length: count },
      () => simulator.queueJob({ repo: 'acme/app', labels: ['self-hosted', 'linux'] }).id,
    );
  const settled = async (): Promise<void> =>
    void (await simulator.waitFor(
      () => simulator.deliveries().every(({ status, lost }) => status !== 'pending' || lost),
      'all deliveries to be over',
    ));
  const jobs = async (): Promise<number[]> =>
    (await set.events()).map(({ jobId }) => Number(jobId)).toSorted((a, b) => a - b);
  const asked = (): string[] =>
    simulator
      .requests()
      .filter(({ path }) => path.endsWith('/attempts'))
      .map(({ path }) => path);

  test('deliveries during an outage of the receiver, and lost ones, arrive afterwards', async () => {
    simulator.addFault({ kind: 'webhook_lost', count: 2 });
    const missed = queue(30);
    await settled();
    await receive();
    const heard = queue(5);
    const counts: Record<string, number> = {};
    const redelivery = startRedelivery({
      credentials,
      ciServers,
      intervalMs: 50,
      ready: async () => true,
      logger,
      onRedelivered: (credential, count) =>
        (counts[credential] = (counts[credential] ?? 0) + count),
    });
    await until('the demand to be complete', async () => (await jobs()).length === 35);
    await settled();
    await redelivery.stop();
    expect(await jobs()).toEqual([...missed, ...heard]);
    // One of the two credentials of the App asks; each delivery once.
    expect(counts).toEqual({ acme: 30 });
    expect(new Set(asked()).size).toBe(30);
    expect(asked()).toHaveLength(30);
  });

  test('nothing is requested while nothing would be accepted, nor deliveries of other webhooks', async () => {
    queue(1);
    await settled();
    let ready = false;
    let looked = 0;
    const redelivery = startRedelivery({
      credentials,
      ciServers,
      intervalMs: 10,
      ready: async () => (looked++, ready),
      logger,
    });
    await until('some rounds', () => looked > 5);
    expect(asked()).toEqual([]);
    simulator.addFault({
      kind: 'status',
      status: 502,
      endpoint: 'GET /app/hook/deliveries*',
      count: 2,
    });
    ready = true;
    await until('the round after failures', () => asked().length === 1);
    await redelivery.stop();
    expect(simulator.requests().filter(({ status }) => status === 502)).toHaveLength(2);
  });

  test('only an App can request it', async () => {
    expect(await ciServers.get('token').redeliverFailed?.({ maxRedeliveries: 1 })).toBeUndefined();
    const app = ciServers.get('acme');
    queue(3);
    await settled();
    expect(await app.redeliverFailed?.({ maxRedeliveries: 2 })).toEqual({
      redelivered: 2,
      postponed: 1,
    });
    expect(await app.redeliverFailed?.({ maxRedeliveries: 2 })).toMatchObject({
      redelivered: 1,
      postponed: 0,
    });
  });
});
