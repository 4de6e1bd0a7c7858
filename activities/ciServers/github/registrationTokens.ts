import type { Scope } from '../../../core/domain/ciServer.ts';
import type { Clock } from '../clock.ts';
import type { RestApi } from './api.ts';
import { type Expiring, ExpiringCache } from './expiringCache.ts';
import { registrationTokenAnswer } from './responses.ts';
import { scopeRequest } from './scopeRequests.ts';

/**
 * Minimum remaining validity of a registration token (ms). Tokens are valid for an hour, and a pod
 * may take long to start.
 */
const MIN_TOKEN_VALIDITY_MS = 30 * 60_000;

/** Registration tokens, one for each scope, kept until they expire. */
export class RegistrationTokens {
  readonly #api: RestApi;
  readonly #clock: Clock;
  readonly #tokens = new Map<string, ExpiringCache<string>>();

  constructor(api: RestApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /** Returns the token of a scope. */
  of(scope: Scope): ExpiringCache<string> {
    const key = `${scope.kind}:${scope.name}`;
    const known = this.#tokens.get(key);
    if (known !== undefined) return known;
    const request = scopeRequest(
      'registration_token',
      'POST',
      scope,
      '/actions/runners/registration-token',
      {},
    );
    const fetch = async (): Promise<Expiring<string>> => {
      const { token, expires_at } = this.#api.parse(
        registrationTokenAnswer,
        await this.#api.request(request),
        request,
      );
      return { value: token, expiresAtMs: Date.parse(expires_at) };
    };
    const value = new ExpiringCache(fetch, MIN_TOKEN_VALIDITY_MS, this.#clock);
    this.#tokens.set(key, value);
    return value;
  }
}
