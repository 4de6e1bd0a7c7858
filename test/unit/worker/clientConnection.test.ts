import { once } from 'node:events';
import {
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Session,
} from 'node:http2';
import { createServer, type Server } from 'node:net';
import { expect, test } from '@jest/globals';
import { connectClient } from '../../../worker/temporal/clientConnection.ts';
import { freePort } from '../../../tools/lab/ports.ts';
import { connectTemporal } from '../../../worker/temporal/connect.ts';
import { until } from '../../support/until.ts';

async function listening(server: Server | Http2Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
}

/** A server that responds to every call with an empty message. */
function emptyAnswers(): { server: Http2Server; cut: () => void } {
  const server = createHttp2Server();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc' },
      { waitForTrailers: true },
    );
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.alloc(5));
  });
  return {
    server,
    cut: () => {
      server.close();
      for (const session of sessions) session.destroy();
    },
  };
}

test('the reason of a failed connection is reported at once', async () => {
  const address = '127.0.0.1:1';
  await expect(
    connectTemporal(
      { address, namespace: 'default', connectionOptions: { address } },
      { connect: connectClient, timeoutMs: 0 },
    ),
  ).rejects.toThrow(
    `TEMPORAL_ADDRESS: no Temporal server answers at ${address} within 0 s (ECONNREFUSED): set`,
  );
});

test('an unavailable server is retried twice a second, and connected as soon as it is back', async () => {
  const first = emptyAnswers();
  const port = await freePort();
  await listening(first.server, port);
  const connection = await connectClient({ address: `127.0.0.1:${port}` });
  first.cut();
  let tries = 0;
  const away = createServer((socket) => {
    tries++;
    socket.destroy();
  });
  await listening(away, port);
  const call = async (): Promise<unknown> =>
    await connection.withDeadline(
      Date.now() + 60_000,
      async () => await connection.workflowService.getSystemInfo({}),
    );
  const waiting = call();
  // gRPC's own backoff grows: its tenth attempt would be after more than half a minute.
  await until(
    'ten tries',
    () => tries >= 10,
    () => String(tries),
    25_000,
  );
  await new Promise((resolve) => away.close(resolve));
  const second = emptyAnswers();
  await listening(second.server, port);
  expect(await waiting).toBeDefined();
  await connection.close();
  second.cut();
}, 90_000);
