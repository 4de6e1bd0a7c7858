import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { verify } from '@octokit/webhooks-methods';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type IncomingHttpHeaders, type Server, createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { Fleet } from './fleet.ts';
import { startSimulator, type Simulator } from './simulator.ts';
import { jitEnv } from '../../test/support/runnerProcess.ts';

interface Received {
  headers: IncomingHttpHeaders;
  text: string;
  body: any;
}

let received: Received[];
let receiver: Server;
let simulator: Simulator;
let fleet: Fleet;
let status: number;

beforeEach(async () => {
  received = [];
  status = 202;
  receiver = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      received.push({ headers: request.headers, text, body: JSON.parse(text) });
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  simulator = await startSimulator({
    apps: [{ id: 7, installations: [{ id: 70, account: 'acme' }] }],
    webhook: { url: `http://127.0.0.1:${port}/hook`, secret: 'shh', hookId: 42 },
  });
  fleet = new Fleet(simulator.url);
});
afterEach(async () => {
  fleet.close();
  await simulator.stop();
  await new Promise((resolve) => receiver.close(resolve));
});

const settled = (): boolean =>
  simulator.deliveries().every((delivery) => delivery.status !== 'pending' || delivery.lost);
const actions = (): string[] => received.map(({ body }) => body.action as string);

async function ephemeral(): Promise<number> {
  fleet.start((await jitEnv(simulator.url, `hooked-${randomUUID()}`)).env);
  const job = simulator.queueJob({ repo: 'acme/widgets' });
  await simulator.waitForJob(job.id, 'completed');
  return job.id;
}

test("a job is told of three times, signed, with every field of GitHub's own examples", async () => {
  const id = await ephemeral();
  await simulator.waitFor(settled, 'all delivered');
  expect(actions()).toEqual(['queued', 'in_progress', 'completed']);
  for (const { headers, text } of received) {
    expect(await verify('shh', text, String(headers['x-hub-signature-256']))).toBe(true);
    expect(headers).toMatchObject({
      'x-github-event': 'workflow_job',
      'x-github-hook-id': '42',
      'content-type': 'application/json',
    });
  }
  expect(new Set(received.map(({ headers }) => headers['x-github-delivery'])).size).toBe(3);
  const [queued, , completed] = received;
  expect(queued?.body.workflow_job).toMatchObject({
    id,
    status: 'queued',
    runner_id: null,
    conclusion: null,
  });
  expect(completed?.body.workflow_job).toMatchObject({
    id,
    status: 'completed',
    conclusion: 'success',
    runner_name: expect.stringMatching(/^hooked-/),
  });
  const file = createRequire(import.meta.url).resolve(
    '@octokit/webhooks-examples/api.github.com/index.json',
  );
  const events = JSON.parse(readFileSync(file, 'utf8')) as {
    name: string;
    examples: Record<string, any>[];
  }[];
  const examples = events.find(({ name }) => name === 'workflow_job')?.examples ?? [];
  const example = examples.find(
    (one) => one['action'] === 'queued' && one['workflow_job'].runner_id === null,
  );
  expect(example).toBeDefined();
  // `deployment` is there only for a job with an environment.
  const keys = Object.keys(example ?? {}).filter((key) => key !== 'deployment');
  expect(Object.keys(queued?.body)).toEqual(expect.arrayContaining(keys));
  expect(Object.keys(queued?.body.workflow_job)).toEqual(
    expect.arrayContaining(Object.keys(example?.['workflow_job'])),
  );
  expect(Object.keys(queued?.body.repository)).toEqual(
    expect.arrayContaining(Object.keys(example?.['repository'])),
  );
});

test('deliveries are lost, and can be sent again under the same id', async () => {
  simulator.addFault({ kind: 'webhook_lost', endpoint: 'workflow_job.completed' });
  await ephemeral();
  await simulator.waitFor(settled, 'all delivered');
  expect(actions()).toEqual(['queued', 'in_progress']);
  const lost = simulator.deliveries().find((delivery) => delivery.lost);
  const again = simulator.redeliver(lost?.id ?? 0);
  await simulator.waitFor(settled, 'delivered again');
  expect(actions()).toEqual(['queued', 'in_progress', 'completed']);
  expect(received[2]?.headers['x-github-delivery']).toBe(lost?.guid);
  expect(again).toMatchObject({ redelivery: true, guid: lost?.guid });
});

test('deliveries are doubled under one id', async () => {
  simulator.addFault({ kind: 'webhook_doubled', endpoint: 'workflow_job.queued' });
  await ephemeral();
  await simulator.waitFor(() => settled() && received.length === 4, 'all delivered');
  expect(actions().toSorted()).toEqual(['completed', 'in_progress', 'queued', 'queued']);
  expect(new Set(received.map(({ headers }) => headers['x-github-delivery'])).size).toBe(3);
});

test('deliveries come late, and in another order', async () => {
  simulator.addFault({ kind: 'webhook_delayed', ms: 3_000, endpoint: 'workflow_job.queued' });
  await ephemeral();
  await simulator.waitFor(settled, 'all delivered');
  expect(actions()).toEqual(['in_progress', 'completed', 'queued']);
  simulator.clearFaults();
  received.length = 0;
  simulator.addFault({ kind: 'webhook_shuffled', of: 6 });
  await ephemeral();
  expect(actions()).toEqual([]);
  await ephemeral();
  await simulator.waitFor(settled, 'all delivered');
  expect(actions()).toHaveLength(6);
  expect(received.map(({ body }) => `${body.workflow_job.id} ${body.action}`)).not.toEqual(
    [1002, 1003].flatMap((id) =>
      ['queued', 'in_progress', 'completed'].map((action) => `${id} ${action}`),
    ),
  );
});

test('a refused delivery is not sent again by itself', async () => {
  status = 500;
  await ephemeral();
  await simulator.waitFor(settled, 'all answered');
  expect(simulator.deliveries().map((delivery) => delivery.status_code)).toEqual([500, 500, 500]);
  expect(received).toHaveLength(3);
});

test('a job cancelled before it had a runner is completed without one', async () => {
  const job = simulator.queueJob({ repo: 'acme/widgets', labels: ['none'] });
  simulator.cancelJob(job.id);
  await simulator.waitFor(settled, 'all delivered');
  expect(received.at(-1)?.body).toMatchObject({
    action: 'completed',
    workflow_job: { conclusion: 'cancelled', runner_id: null, steps: [] },
  });
});
