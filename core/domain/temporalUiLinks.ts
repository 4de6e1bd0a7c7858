/** Address of a workflow in Temporal's UI. @param ui - its base, without a slash at the end @param runId - default: the last run */
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

/** Address of the page of Temporal's UI that lists what a filter selects. @param query - https://docs.temporal.io/list-filter */
export function workflowListUrl(ui: string, namespace: string, query: string): string {
  return `${ui}/namespaces/${encodeURIComponent(namespace)}/workflows?query=${encodeURIComponent(query)}`;
}
