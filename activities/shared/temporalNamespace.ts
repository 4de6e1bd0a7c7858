/**
 * IDs of Temporal namespaces. The ID is used because the same name may exist on several servers.
 */
import type { Client } from '@temporalio/client';

const known = new WeakMap<object, Map<string, string>>();

/**
 * Returns the ID of the client's namespace. Sends one request per connection and namespace.
 * @throws Error if Temporal does not answer or returns no ID
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
