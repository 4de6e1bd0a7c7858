import { createAppAuth } from '@octokit/auth-app';
import type { Octokit } from '@octokit/core';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import type { Credential } from '../credentials.ts';
import type { SecretSource } from '../secretSource.ts';
import { ExpiringCache, type Expiring } from './expiringCache.ts';

/** Gives the token requests are sent with. */
export interface TokenSource {
  /** @throws CiServerError `credentials`, or whatever the request for an installation token failed with */
  token(signal?: AbortSignal): Promise<string>;
  /** After a 401: is it worth trying again at once (with another token, as a rule)? */
  renew(refused: string, signal?: AbortSignal): Promise<boolean>;
}

/** A personal access token, read from its source for every request. */
export class PatTokens implements TokenSource {
  readonly #secret: SecretSource;

  constructor(secret: SecretSource) {
    this.#secret = secret;
  }

  token(): Promise<string> {
    return this.#secret.read();
  }

  async renew(refused: string): Promise<boolean> {
    return (await this.#secret.read()) !== refused;
  }
}

/** Installation tokens live an hour; a request may be under way for half a minute, and clocks differ. */
const MIN_TOKEN_LIFE_MS = 5 * 60_000;

/** A token just made may be unknown to some of GitHub's machines for a moment (auth-app's own strategy waits for this, too). */
const TOKEN_SPREADS_MS = 5_000;

const installationToken = z.object({ token: z.string().min(1), expires_at: z.string() });

/**
 * Installation tokens of a GitHub App, exchanged for a JWT signed with the app's key.
 *
 * The exchange is made here and not by auth-app's installation strategy: that one shares requests under way between all apps of a
 * process by installation id alone (one for github.com would be handed out for a GitHub Enterprise Server with the same id), sleeps and
 * retries inside the call, and has no AbortSignal. Signing, and healing a wrong clock, are auth-app's.
 */
export class AppTokens implements TokenSource {
  readonly #secret: SecretSource;
  readonly #app: Extract<Credential, { type: 'app' }>;
  readonly #octokit: Octokit;
  readonly #clock: Clock;
  #key = '';
  #tokens: ExpiringCache<string> | undefined;
  #madeAt = 0;

  constructor(
    secret: SecretSource,
    app: Extract<Credential, { type: 'app' }>,
    octokit: Octokit,
    clock: Clock,
  ) {
    this.#secret = secret;
    this.#app = app;
    this.#octokit = octokit;
    this.#clock = clock;
  }

  async token(signal?: AbortSignal): Promise<string> {
    const key = await this.#secret.read();
    if (this.#tokens === undefined || key !== this.#key) {
      this.#key = key;
      this.#tokens = new ExpiringCache(() => this.#exchange(key), MIN_TOKEN_LIFE_MS, this.#clock);
    }
    return this.#tokens.get(signal);
  }

  async renew(refused: string, signal?: AbortSignal): Promise<boolean> {
    if (this.#clock.now() - this.#madeAt < TOKEN_SPREADS_MS) await this.#clock.sleep(1000, signal);
    else this.#tokens?.forget(refused);
    return true;
  }

  /** A request signed with the app's own key; auth-app knows which routes are such. */
  async requestAsApp(
    route: string,
    parameters: Record<string, unknown>,
    privateKey?: string,
  ): Promise<Awaited<ReturnType<Octokit['request']>>> {
    const key = privateKey ?? (await this.#secret.read());
    const auth = createAppAuth({ appId: this.#app.appId, privateKey: key, log: this.#octokit.log });
    return await auth.hook(this.#octokit.request, route, parameters);
  }

  async #exchange(privateKey: string): Promise<Expiring<string>> {
    const answer = await this.requestAsApp(
      'POST /app/installations/{installation_id}/access_tokens',
      { installation_id: this.#app.installationId },
      privateKey,
    );
    const { token, expires_at } = installationToken.parse(answer.data);
    this.#madeAt = this.#clock.now();
    return { value: token, expiresAtMs: Date.parse(expires_at) };
  }
}
