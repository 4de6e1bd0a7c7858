import { ServiceError } from '@temporalio/client';

/**
 * Returns the error that the client throws for a response of Temporal with this status.
 * @param code - google.rpc.Code
 */
export function grpcError(code: number, details = 'refused'): Error {
  return new ServiceError('refused', {
    cause: Object.assign(new Error(details), { code, details, metadata: {} }),
  });
}
