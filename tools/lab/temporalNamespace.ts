import { Connection, isGrpcServiceError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { port, type Lab } from './component.ts';

export const NAMESPACE = 'default';
const RETENTION_MS = 24 * 3_600_000;

export const SEARCH_ATTRIBUTE_NAMES = Object.values(SEARCH_ATTRIBUTES).map((key) => key.name);

/** Where Temporal answers, whichever server it is. */
export const temporalAddress = (lab: Lab): string => `127.0.0.1:${port(lab, 'temporal')}`;

/** google.rpc.Code */
const NOT_FOUND = 5;
/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;

/**
 * Whether the namespace exists and all search attributes can be used. Adds missing ones: a database
 * of an earlier Holdfast has fewer attributes.
 */
export async function servesNamespace(lab: Lab): Promise<boolean> {
  return await preparesNamespace(temporalAddress(lab), NAMESPACE);
}

/** The same of any namespace of any server. */
export async function preparesNamespace(address: string, namespace: string): Promise<boolean> {
  return await answers(address, async ({ workflowService, operatorService }) => {
    try {
      await workflowService.describeNamespace({ namespace });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await workflowService.registerNamespace({
        namespace,
        workflowExecutionRetentionPeriod: msToTs(RETENTION_MS),
      });
    }
    const { customAttributes } = await operatorService.listSearchAttributes({
      namespace,
    });
    const missing = SEARCH_ATTRIBUTE_NAMES.filter((name) => !(name in (customAttributes ?? {})));
    if (missing.length === 0) {
      // Listed is not usable yet: the server refuses a new one for some seconds.
      await workflowService.countWorkflowExecutions({
        namespace,
        query: SEARCH_ATTRIBUTE_NAMES.map((name) => `${name} IS NULL`).join(' AND '),
      });
      return true;
    }
    await operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
    });
    return false; // asked again
  });
}

/**
 * Whether the frontend reaches the history service: the service responds that it has no such
 * workflow.
 */
export async function reachesHistories(lab: Lab): Promise<boolean> {
  return await answers(temporalAddress(lab), async ({ workflowService }) => {
    try {
      await workflowService.describeWorkflowExecution({
        namespace: NAMESPACE,
        execution: { workflowId: 'nobody' },
      });
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return true;
    }
  });
}

const isNotFound = (error: unknown): boolean =>
  isGrpcServiceError(error) && (error.code as number) === NOT_FOUND;

/** Runs requests and returns the result; `false` while a starting server cannot respond. */
async function answers(
  address: string,
  ask: (connection: Connection) => Promise<boolean>,
): Promise<boolean> {
  let connection: Connection;
  try {
    connection = await Connection.connect({ address, connectTimeout: 2_000 });
  } catch {
    return false;
  }
  try {
    return await ask(connection);
  } catch {
    return false; // not yet
  } finally {
    await connection.close();
  }
}
