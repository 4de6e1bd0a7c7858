import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';

let server: Server;
let api: ApiServer;
let connections: number;

beforeEach(async () => {
  connections = 0;
  server = createServer((request, response) => {
    request
      .resume()
      .once('end', () =>
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ kind: 'Status', status: 'Success' })),
      );
  }).on('connection', () => connections++);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const config = new KubeConfig();
  const { port } = server.address() as AddressInfo;
  config.loadFromClusterAndUser(
    { name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'u' },
  );
  api = new ApiServer(config, { connections: 1 });
});
afterEach(async () => {
  await api.close();
  server.close();
});

test('a deletion with preconditions does not cost a connection', async () => {
  for (const uid of ['a', 'b', 'c'])
    await api.call({
      verb: 'delete',
      resource: 'pods',
      path: '/api/v1/namespaces/ci/pods/runner',
      body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid } },
    });
  expect(connections).toBe(1);
});
