import { WorkflowNotFoundError, isGrpcServiceError } from '@temporalio/client';

/** google.rpc code NOT_FOUND: https://grpc.io/docs/guides/status-codes */
export const GRPC_NOT_FOUND = 5;

/** gRPC status of a failed request to Temporal. `details` may be empty. */
export interface GrpcStatus {
  /** Value of google.rpc.Code. */
  readonly code: number;
  readonly details: string;
}

/**
 * Returns the first gRPC status in the chain of causes, because the client wraps it. Pure.
 * @returns `undefined` if the error is not a response of Temporal
 */
export function grpcStatus(error: unknown): GrpcStatus | undefined {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    if (isGrpcServiceError(each)) return { code: each.code, details: each.details || each.message };
  }
  return undefined;
}

/** Codes INVALID_ARGUMENT, PERMISSION_DENIED and FAILED_PRECONDITION. */
const FINAL_CODES: ReadonlySet<number> = new Set([3, 7, 9]);

/**
 * Whether a signal failed for a reason that no retry can fix. False if its workflow is continuing
 * as new (RESOURCE_EXHAUSTED) or there is no connection. Pure.
 */
export function isNonRetryable(error: unknown): boolean {
  return (
    error instanceof WorkflowNotFoundError || FINAL_CODES.has(grpcStatus(error)?.code ?? Number.NaN)
  );
}
