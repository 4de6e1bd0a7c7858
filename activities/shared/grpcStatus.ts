import { WorkflowNotFoundError, isGrpcServiceError } from '@temporalio/client';

/** Code of google.rpc: https://grpc.io/docs/guides/status-codes */
export const GRPC_NOT_FOUND = 5;

/** What Temporal answered a request with that failed; `details` may be empty. */
export interface GrpcStatus {
  /** google.rpc.Code. */
  readonly code: number;
  readonly details: string;
}

/** The gRPC status somewhere in the chain of causes: the client wraps it. `undefined`: it was no answer of Temporal's. Pure. */
export function grpcStatus(error: unknown): GrpcStatus | undefined {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    if (isGrpcServiceError(each)) return { code: each.code, details: each.details || each.message };
  }
  return undefined;
}

/** Invalid argument, permission denied, failed precondition. */
const FINAL_CODES: ReadonlySet<number> = new Set([3, 7, 9]);

/** Has a signal failed for something that no other try makes better? Not where its workflow is continuing as new (resource exhausted), nor without a connection. Pure. */
export function isNonRetryable(error: unknown): boolean {
  return (
    error instanceof WorkflowNotFoundError || FINAL_CODES.has(grpcStatus(error)?.code ?? Number.NaN)
  );
}
