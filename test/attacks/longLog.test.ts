/** A job that writes more than its runner's worker has memory: the log's tail is read without holding it, and no further than it is worth. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ApiObjects } from '../../activities/compute/kubernetes/apiObjects.ts';
import { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import { podLogTail } from '../../activities/compute/kubernetes/podLogTail.ts';

const LINE = `${'x'.repeat(16_383)}\n`;
const MiB = 2 ** 20;

let sent = 0;
/** An API server whose kubelet heeds no limit. */
const server = createServer((request, response) => {
  if (request.url?.includes('/pods/short/')) return void response.end('a\nb\nthe end\n');
  if (request.url?.includes('/pods/silent/')) return void response.end();
  const chunk = Buffer.from(LINE.repeat(64));
  const more = (): void => {
    while (!response.destroyed && response.write(chunk)) sent += chunk.length;
    sent += chunk.length;
  };
  response.on('drain', more);
  more();
});
let api: ApiServer;
let tail: (name: string, maxBytes: number) => Promise<string | undefined>;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    {
      name: 'c',
      server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      skipTLSVerify: true,
    },
    { name: 'u' },
  );
  api = new ApiServer(config);
  const objects = new ApiObjects(api, { default: 'ci', others: [], jobPods: [] }, 'longlog');
  tail = async (name, maxBytes) => await podLogTail(api, objects, { name, uid: 'u' }, maxBytes);
});
afterAll(async () => {
  await api.close();
  server.closeAllConnections();
  server.close();
});

test('the last bytes of a log, if it has any', async () => {
  expect(await tail('short', 8)).toBe('the end\n');
  expect(await tail('short', 1_000)).toBe('a\nb\nthe end\n');
  expect(await tail('silent', 8)).toBeUndefined();
});

test('an endless log is read up to the limit, with little memory', async () => {
  const before = process.memoryUsage().arrayBuffers;
  const text = await tail('endless', 65_536);
  expect(text).toHaveLength(65_536);
  expect(sent).toBeGreaterThan(31 * MiB);
  // What lies in sockets is not read any more.
  expect(sent).toBeLessThan(64 * MiB);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * MiB);
});
