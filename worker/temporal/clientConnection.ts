import { Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import type { Connect } from './connect.ts';

/** Between two tries, of calls and of the connection itself. gRPC waits up to two minutes by default, and GitHub gives up on a delivery after ten seconds. */
const MAX_PAUSE_MS = 500;
/** Maximum number of attempts of a call, unless its deadline comes first. */
const MAX_ATTEMPTS = 20;

/**
 * Connects a client without the SDK's native part and its bundler. Like that part, it takes no
 * proxy from the environment.
 */
export const connectClient: Connect<Connection> = async (options) => {
  const { delayFunction, retryableDecider } = defaultGrpcRetryOptions({
    maxAttempts: MAX_ATTEMPTS,
  });
  let connected = false;
  const retries = makeGrpcRetryInterceptor({
    delayFunction: (attempt, status) => Math.min(MAX_PAUSE_MS, delayFunction(attempt, status)),
    // The first call reports its error instead of retrying: the caller retries.
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
