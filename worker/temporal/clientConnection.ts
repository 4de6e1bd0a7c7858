import { Connection, defaultGrpcRetryOptions } from '@temporalio/client';
import type { Connect } from './connect.ts';
import { safeRetries } from './safeRetries.ts';

/**
 * Maximum delay between two attempts of a call, and between two attempts to connect (ms). gRPC
 * waits up to two minutes by default, but GitHub gives up on a delivery after ten seconds.
 */
const MAX_PAUSE_MS = 500;
/** Maximum number of attempts of a call. Its deadline may end it earlier. */
const MAX_ATTEMPTS = 20;

/**
 * Connects a client without the native part and the bundler of the SDK. Like the native part, it
 * ignores proxy settings in the environment.
 */
export const connectClient: Connect<Connection> = async (options) => {
  const { delayFunction, retryableDecider } = defaultGrpcRetryOptions({
    maxAttempts: MAX_ATTEMPTS,
  });
  let connected = false;
  const retries = safeRetries({
    delayFunction: (attempt, status) => Math.min(MAX_PAUSE_MS, delayFunction(attempt, status)),
    // The first call fails without a retry, because the caller retries it.
    retryableDecider: (attempt, status) => connected && retryableDecider(attempt, status),
  });
  const channelArgs = {
    'grpc.initial_reconnect_backoff_ms': MAX_PAUSE_MS,
    'grpc.max_reconnect_backoff_ms': MAX_PAUSE_MS,
    'grpc.enable_http_proxy': 0,
  };
  const connection = Connection.lazy({ ...options, channelArgs, interceptors: [retries] });
  try {
    await connection.workflowService.getSystemInfo({});
    connected = true;
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
};
