/** A connection that is closed between two attempts of a call. */
import { createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import { Connection, defaultGrpcRetryOptions } from '@temporalio/client';
import { safeRetries } from '../../../worker/temporal/safeRetries.ts';

test('the call fails as cancelled, and nothing is thrown in a timer', async () => {
  // A server that closes each connection is unavailable.
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const waiting = Promise.withResolvers<void>();
  const { retryableDecider } = defaultGrpcRetryOptions();
  const retries = safeRetries({
    retryableDecider,
    delayFunction: () => {
      waiting.resolve();
      return 100;
    },
  });
  const connection = Connection.lazy({ address: `127.0.0.1:${port}`, interceptors: [retries] });
  const call = connection.workflowService.getSystemInfo({}).then(
    () => undefined,
    (error: unknown) => error,
  );
  await waiting.promise;
  await connection.close();
  expect(await call).toMatchObject({ code: 1 });
  server.close();
});
