import { isDeepStrictEqual } from 'node:util';
import { createAppAuth } from '@octokit/auth-app';
import type { Octokit } from '@octokit/core';
import { z } from 'zod';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { Clock } from '../clock.ts';
import type { Credential } from '../credentials.ts';
import type { SecretSource } from '../secretSource.ts';
import { ExpiringCache, type Expiring } from './expiringCache.ts';
import { RERUN_PERMISSIONS } from './rerunPermissions.ts';

/** Source of the tokens for requests. */
export interface TokenSource {
  /**
   * Returns the current token.
   * @throws CiServerError `credentials`, or the error of the request for an installation token
   */
  token(signal?: AbortSignal): Promise<string>;
  /** Returns whether a retry after a 401 makes sense immediately, usually with another token. */
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

/**
 * Minimum remaining validity of an installation token (ms). Tokens are valid for an hour, a request
 * may take half a minute, and clocks differ.
 */
const MIN_TOKEN_LIFE_MS = 5 * 60_000;

/**
 * Time after its creation in which a token may be unknown to some of GitHub's servers (ms).
 * auth-app's own strategy waits for this too.
 */
const TOKEN_SPREADS_MS = 5_000;

/**
 * Permissions that Holdfast uses. Its tokens have no others, whatever else the App may do
 * (https://docs.github.com/rest/authentication/permissions-required-for-github-apps).
 */
const USED_PERMISSIONS: Readonly<Record<string, 'read' | 'write'>> = {
  actions: 'read',
  administration: 'write',
  metadata: 'read',
  organization_self_hosted_runners: 'write',
};

const installationToken = z.object({
  token: z.string().min(1),
  expires_at: z.string(),
  permissions: z.record(z.string(), z.string()).default({}),
});
type InstallationToken = z.output<typeof installationToken>;

/**
 * Installation tokens of a GitHub App, exchanged for a JWT that is signed with the app's key.
 *
 * The exchange is implemented here instead of using auth-app's installation strategy. That strategy
 * shares requests in progress between all apps of a process by installation ID alone. A token for
 * github.com could then be used for a GitHub Enterprise Server with the same ID. It also sleeps and
 * retries inside the call and has no AbortSignal. auth-app still signs the JWT and corrects a wrong
 * clock.
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

  /**
   * Sends a request that is signed with the app's own key. auth-app knows which routes need that.
   */
  async requestAsApp(
    route: string,
    parameters: Record<string, unknown>,
    privateKey?: string,
  ): Promise<Awaited<ReturnType<Octokit['request']>>> {
    const key = privateKey ?? (await this.#secret.read());
    const auth = createAppAuth({ appId: this.#app.appId, privateKey: key, log: this.#octokit.log });
    return await auth.hook(this.#octokit.request, route, parameters);
  }

  async #createToken(
    privateKey: string,
    permissions?: Readonly<Record<string, string>>,
  ): Promise<InstallationToken> {
    const answer = await this.requestAsApp(
      'POST /app/installations/{installation_id}/access_tokens',
      { installation_id: this.#app.installationId, ...omitUndefined({ permissions }) },
      privateKey,
    );
    return installationToken.parse(answer.data);
  }

  async #exchange(privateKey: string): Promise<Expiring<string>> {
    const whole = await this.#createToken(privateKey);
    const used = usedPermissions(
      whole.permissions,
      this.#app.reruns ? { ...USED_PERMISSIONS, ...RERUN_PERMISSIONS } : USED_PERMISSIONS,
    );
    // GitHub rejects a request for a permission that the installation does not have, so the granted
    // ones must be known first. The first token is dropped if it may do more than is used.
    const { token, expires_at } = isDeepStrictEqual(used, whole.permissions)
      ? whole
      : await this.#createToken(privateKey, used);
    this.#madeAt = this.#clock.now();
    return { value: token, expiresAtMs: Date.parse(expires_at) };
  }
}

/** Returns those of the granted permissions that Holdfast uses, with the least access. */
function usedPermissions(
  granted: Readonly<Record<string, string>>,
  wanted: typeof USED_PERMISSIONS,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(wanted)
      .filter(([name]) => Object.hasOwn(granted, name))
      .map(([name, access]) => [name, granted[name] === 'read' ? 'read' : access]),
  );
}
