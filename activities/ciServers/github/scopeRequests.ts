/** Requests to a scope: an organization, a repository or an enterprise. */
import type { Scope } from '../../../core/domain/ciServer.ts';
import { scopeRoute } from './addresses.ts';
import type { RestApi } from './api.ts';
import type { RestRequest, RestResponse } from './restRequest.ts';
import type { RestCall } from './classify.ts';
import { runnerListAnswer } from './responses.ts';

/**
 * Returns a request to a scope.
 * @param path - route template below the scope, such as `/actions/runners`
 */
export function scopeRequest(
  call: RestCall,
  method: string,
  scope: Scope,
  path: string,
  parameters: Record<string, unknown>,
): RestRequest {
  const { prefix, parameters: scopeParameters } = scopeRoute(scope);
  const subject =
    'name' in parameters
      ? `${scope.kind} ${scope.name}, runner ${String(parameters['name'])}`
      : `${scope.kind} ${scope.name}`;
  return {
    call,
    route: `${method} ${prefix}${path}`,
    parameters: { ...scopeParameters, ...parameters },
    subject,
  };
}

/**
 * Sends a request and verifies a 404. After a 404, the scope is listed: if that works, the
 * credential sees the scope. The credential may have regained access since the first 404, so the
 * request is sent again and only its second 404 counts.
 * @throws CiServerError `credentials` if the credential cannot see the scope; otherwise as
 * {@link RestApi.request}
 */
export async function requestInScope(
  api: RestApi,
  request: RestRequest,
  scope: Scope,
  signal?: AbortSignal,
): Promise<RestResponse> {
  const answer = await api.request(request, signal);
  if (answer.status !== 404) return answer;
  const list = scopeRequest('list', 'GET', scope, '/actions/runners', { per_page: 1 });
  api.parse(runnerListAnswer, await api.request(list, signal), list);
  return await api.request(request, signal);
}
