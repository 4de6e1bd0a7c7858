/** Which Temporal namespace the workflows of this process are in, by its ID: names repeat from one server to the next. */
import type { Client } from '@temporalio/client';

const known = new WeakMap<object, Map<string, string>>();

/**
 * Returns the ID that the server has given to the client's namespace. Asks once for each connection.
 * @throws what the connection throws when Temporal does not answer
 */
export async function temporalNamespaceId({
  workflowService,
  options: { namespace },
}: Client): Promise<string> {
  const ids = known.get(workflowService) ?? new Map<string, string>();
  known.set(workflowService, ids);
  const earlier = ids.get(namespace);
  if (earlier !== undefined) return earlier;
  const { namespaceInfo } = await workflowService.describeNamespace({ namespace });
  const id = namespaceInfo?.id;
  if (!id) throw new Error(`Temporal gives no ID for the namespace "${namespace}"`);
  ids.set(namespace, id);
  return id;
}
