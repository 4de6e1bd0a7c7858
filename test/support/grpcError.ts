import { ServiceError } from '@temporalio/client';

/** What the client throws when Temporal answers a request with this status. @param code - google.rpc.Code */
export function grpcError(code: number, details = 'refused'): Error {
  return new ServiceError('refused', {
    cause: Object.assign(new Error(details), { code, details, metadata: {} }),
  });
}
