/**
 * Returns the URL of a workflow in Temporal's UI.
 * @param ui - base URL without a trailing slash
 * @param runId - default: the latest run
 */
export function workflowUrl(
  ui: string,
  namespace: string,
  workflowId: string,
  runId?: string,
): string {
  const parts = [
    namespace,
    'workflows',
    workflowId,
    ...(runId === undefined ? [] : [runId, 'history']),
  ];
  return `${ui}/namespaces/${parts.map(encodeURIComponent).join('/')}`;
}

/**
 * Returns the URL of the workflow list in Temporal's UI with a filter.
 * @param query - https://docs.temporal.io/list-filter
 */
export function workflowListUrl(ui: string, namespace: string, query: string): string {
  return `${ui}/namespaces/${encodeURIComponent(namespace)}/workflows?query=${encodeURIComponent(query)}`;
}
