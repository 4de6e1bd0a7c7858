import { makeGrpcRetryInterceptor } from '@temporalio/client';

type Interceptor = ReturnType<typeof makeGrpcRetryInterceptor>;
type RetryOptions = Parameters<typeof makeGrpcRetryInterceptor>[0];
type Call = ReturnType<Interceptor>;

/** gRPC status CANCELLED, which is not retried. */
const CANCELLED = 1;

/**
 * Returns the SDK's interceptor for retries, for a connection that may be closed between two
 * attempts. The SDK's own throws in a timer then ("Channel has been shut down"), which ends the
 * process. With this one, the call fails as cancelled.
 */
export function safeRetries(options: RetryOptions): Interceptor {
  const retries = makeGrpcRetryInterceptor(options);
  return (callOptions, nextCall) =>
    retries(callOptions, (each) => {
      try {
        return nextCall(each);
      } catch {
        return cancelledCall() as unknown as Call;
      }
    });
}

/** Returns a call that fails as soon as it starts. */
function cancelledCall(): Partial<
  Pick<Call, 'start' | 'sendMessage' | 'halfClose' | 'cancelWithStatus'>
> {
  const ignore = (): void => undefined;
  return {
    start: (metadata, listener) =>
      listener?.onReceiveStatus?.({
        code: CANCELLED,
        details: 'the connection was closed',
        metadata,
      }),
    sendMessage: ignore,
    halfClose: ignore,
    cancelWithStatus: ignore,
  };
}
