import type { Scope } from '../../../core/domain/ciServer.ts';
import type { ScaleSetMessage, ScaleSetStatistics } from '../../../core/domain/scaleSet.ts';
import { CiServerError } from '../../ports/ciServerError.ts';
import type { ScaleSetSession } from '../../ports/scaleSets.ts';
import type { Tenant, TenantRequest, TenantResponse } from './tenant.ts';
import {
  acquiredAnswer,
  messageAnswer,
  sessionAnswer,
  type SessionAnswer,
} from './tenantResponses.ts';

/** GitHub holds a request for the next message for about 50 s. */
const POLL_TIMEOUT_MS = 90_000;
const ACCEPT = 'application/json; api-version=6.0-preview';

/** Scale set of a session. */
export interface SessionPlace {
  readonly tenant: Tenant;
  readonly scope: Scope;
  readonly scaleSetId: number;
}

/**
 * Opens a session. The request is never repeated here: see {@link ScaleSets.openSession}.
 * @throws CiServerError `conflict`, or `session_lost` if the scale set is gone
 */
export async function openSession(
  place: SessionPlace,
  ownerName: string,
  signal?: AbortSignal,
): Promise<SessionAnswer> {
  return await requestSession(place, 'POST', '', { ownerName }, signal);
}

/**
 * Renews the token of a session.
 * @throws CiServerError `session_lost` if GitHub has ended the session or the scale set is gone
 */
export async function refreshSession(
  place: SessionPlace,
  sessionId: string,
  signal?: AbortSignal,
): Promise<SessionAnswer> {
  return await requestSession(place, 'PATCH', sessionId, undefined, signal);
}

async function requestSession(
  place: SessionPlace,
  method: 'POST' | 'PATCH',
  sessionId: string,
  body: unknown,
  signal?: AbortSignal,
): Promise<SessionAnswer> {
  const { tenant, scope } = place;
  const request = { ...sessionRequest(place, method, sessionId), body };
  const answer = await tenant.request(scope, request, signal);
  if (answer.status === 404) throw lost(place, request);
  return tenant.parse(sessionAnswer, answer, request);
}

function sessionRequest(
  { scaleSetId, scope }: SessionPlace,
  method: TenantRequest['method'],
  sessionId: string,
): TenantRequest {
  const sessions = (id: string | number): string => `_apis/runtime/runnerscalesets/${id}/sessions`;
  const one = sessionId === '' ? '' : `/${encodeURIComponent(sessionId)}`;
  return {
    method,
    path: sessions(scaleSetId) + one,
    route: sessions('{id}') + (sessionId === '' ? '' : '/{session}'),
    subject: `${scope.kind} ${scope.name}, scale set ${scaleSetId}`,
  };
}

const lost = ({ tenant }: SessionPlace, request: TenantRequest): CiServerError =>
  tenant.toError('session_lost', request, 'GitHub has ended the session', 404);

/** A session at GitHub. Its token is renewed when GitHub rejects it, once for each request. */
export class GitHubScaleSetSession implements ScaleSetSession {
  readonly id: string;
  readonly statistics: ScaleSetStatistics;
  readonly #place: SessionPlace;
  #queue: { readonly url: string; readonly token: string };

  constructor(place: SessionPlace, answer: SessionAnswer) {
    this.#place = place;
    this.id = answer.sessionId;
    this.statistics = answer.statistics;
    this.#queue = { url: answer.messageQueueUrl, token: answer.messageQueueAccessToken };
  }

  async next(
    last: number,
    capacity: number,
    signal?: AbortSignal,
  ): Promise<ScaleSetMessage | undefined> {
    const request = this.#request('GET', '{queue}');
    const answer = await this.#withToken(
      request,
      async (token) => {
        const url = new URL(this.#queue.url);
        if (last > 0) url.searchParams.set('lastMessageId', String(last));
        const headers = { accept: ACCEPT, 'x-scalesetmaxcapacity': String(capacity) };
        return await this.#place.tenant.send(
          { ...request, url, token, headers, timeoutMs: POLL_TIMEOUT_MS },
          signal,
        );
      },
      signal,
    );
    if (answer.status === 404) throw lost(this.#place, request);
    // 202: no message in time.
    if (answer.status !== 200) return undefined;
    return this.#place.tenant.parse(messageAnswer, answer, request);
  }

  async acknowledge(messageId: number, signal?: AbortSignal): Promise<void> {
    const request = this.#request('DELETE', '{queue}/{message}');
    await this.#withToken(
      request,
      async (token) => {
        const url = new URL(this.#queue.url);
        url.pathname = `${url.pathname.replace(/\/+$/, '')}/${messageId}`;
        // 404: acknowledged before. A lost session shows with the next message.
        return await this.#place.tenant.send({ ...request, url, token }, signal);
      },
      signal,
    );
  }

  async acquire(requestIds: readonly number[], signal?: AbortSignal): Promise<number[]> {
    const { tenant, scope, scaleSetId } = this.#place;
    const jobs = (id: string | number): string => `_apis/runtime/runnerscalesets/${id}/acquirejobs`;
    const request: TenantRequest = {
      ...this.#request('POST', jobs('{id}')),
      path: jobs(scaleSetId),
      body: requestIds,
    };
    const answer = await this.#withToken(
      request,
      async (token) => await tenant.request(scope, { ...request, token }, signal),
      signal,
    );
    if (answer.status === 404) throw lost(this.#place, request);
    return tenant.parse(acquiredAnswer, answer, request).value;
  }

  async close(signal?: AbortSignal): Promise<void> {
    const { tenant, scope } = this.#place;
    await tenant.request(scope, sessionRequest(this.#place, 'DELETE', this.id), signal);
  }

  /** Sends a request. If the token has expired, renews it and repeats the request. */
  async #withToken(
    request: TenantRequest,
    send: (token: string) => Promise<TenantResponse>,
    signal?: AbortSignal,
  ): Promise<TenantResponse> {
    const isRejected = (error: unknown): boolean =>
      error instanceof CiServerError && error.status === 401;
    try {
      return await send(this.#queue.token);
    } catch (error) {
      if (!isRejected(error)) throw error;
    }
    const answer = await refreshSession(this.#place, this.id, signal);
    this.#queue = { url: answer.messageQueueUrl, token: answer.messageQueueAccessToken };
    try {
      return await send(this.#queue.token);
    } catch (error) {
      throw isRejected(error) ? lost(this.#place, request) : error;
    }
  }

  #request(method: TenantRequest['method'], route: string): TenantRequest {
    const { scope, scaleSetId } = this.#place;
    return {
      method,
      path: '',
      route,
      subject: `${scope.kind} ${scope.name}, scale set ${scaleSetId}`,
    };
  }
}
