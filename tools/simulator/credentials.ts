import { createVerify, randomBytes } from 'node:crypto';
import type { Answer } from './responses.ts';
import * as answers from './responses.ts';
import type { Settings, SimulatedApp, SimulatedInstallation, SimulatedToken } from './options.ts';
import { matchesGlob } from './scope.ts';
import type { ScopePath } from './types.ts';

/** A credential that was recognised. */
export type Credential = {
  name: string;
  scopes: ScopePath[];
  permission: 'admin' | 'read';
} & (
  { kind: 'token'; userId: number } | { kind: 'app'; installationId: number; expiresMs: number }
);

/** Personal access tokens, Apps, and their installation tokens. */
export class Credentials {
  #byToken = new Map<string, Credential>();
  readonly #apps: SimulatedApp[];
  readonly #installationTokenMs: number;

  constructor(settings: Settings) {
    this.#apps = settings.apps;
    this.#installationTokenMs = settings.installationTokenMs;
    for (const token of settings.tokens) this.addToken(token);
  }

  addToken(token: SimulatedToken): void {
    const userId = this.#byToken.size + 1;
    this.#byToken.set(token.token, {
      kind: 'token',
      userId,
      name: token.name ?? `pat-${userId}`,
      scopes: token.scopes ?? ['*'],
      permission: token.permission ?? 'admin',
    });
  }

  /** Revokes a token: it answers 401 from now on. */
  revokeToken(token: string): void {
    this.#byToken.delete(token);
  }

  /**
   * Changes what all tokens with this name can access. Everything in a removed scope returns 404.
   */
  setAccess(name: string, access: { scopes?: ScopePath[]; permission?: 'admin' | 'read' }): void {
    for (const credential of this.#byToken.values()) {
      if (credential.name === name) Object.assign(credential, access);
    }
    for (const app of this.#apps) {
      for (const installation of app.installations)
        if (installationName(app, installation) === name) Object.assign(installation, access);
    }
  }

  /** Returns the credential, or the response that rejects it. */
  authenticate(authorization: string | undefined): Credential | Answer {
    const token = bearer(authorization);
    if (token === undefined) return answers.requiresAuthentication();
    const credential = this.#byToken.get(token);
    if (!credential) return answers.badCredentials();
    if (credential.kind === 'app' && Date.now() >= credential.expiresMs) {
      this.#byToken.delete(token);
      return answers.badCredentials();
    }
    return credential;
  }

  /**
   * Checks an App's JSON web token: format, algorithm, issuer and times; also its signature if the
   * App has a public key.
   */
  authenticateApp(
    authorization: string | undefined,
    now: number = Date.now(),
  ): SimulatedApp | Answer {
    const token = bearer(authorization);
    if (token === undefined) return answers.badJwt();
    const [head, body, signature] = token.split('.');
    const header = decode(head);
    const claims = decode(body);
    if (!header || !claims || !signature || header['alg'] !== 'RS256') return answers.badJwt();
    const app = this.#apps.find(({ id, clientId }) =>
      [String(id), clientId].includes(String(claims['iss'])),
    );
    if (!app) return answers.integrationNotFound();
    const seconds = now / 1000;
    if (typeof claims['exp'] !== 'number' || claims['exp'] <= seconds) return answers.jwtExpired();
    if (claims['exp'] > seconds + 600 + 60) return answers.jwtTooLong();
    if (typeof claims['iat'] !== 'number' || claims['iat'] > seconds + 60) return answers.badJwt();
    if (
      app.publicKey &&
      !createVerify('RSA-SHA256')
        .update(`${head}.${body}`)
        .verify(app.publicKey, signature, 'base64url')
    )
      return answers.badJwt();
    return app;
  }

  /** Creates an installation token, valid for an hour unless configured otherwise. */
  createInstallationToken(
    app: SimulatedApp,
    installation: SimulatedInstallation,
  ): { token: string; expiresMs: number } {
    const token = installationToken();
    const expiresMs = Date.now() + this.#installationTokenMs;
    this.#byToken.set(token, {
      kind: 'app',
      name: installationName(app, installation),
      installationId: installation.id,
      expiresMs,
      scopes: installation.scopes ?? [
        `orgs/${installation.account}`,
        `repos/${installation.account}/*`,
      ],
      permission: installation.permission ?? 'admin',
    });
    return { token, expiresMs };
  }
}

/** Length of the tokens that GitHub issues since 2026-04-27: stateless JWTs. */
const INSTALLATION_TOKEN_LENGTH = 520;

/** Returns a token as long as GitHub's, of three parts with dots like a JWT. */
function installationToken(): string {
  const [header, signature] = [36, 342];
  const payload = INSTALLATION_TOKEN_LENGTH - 'ghs_'.length - header - signature - 2;
  return `ghs_${[header, payload, signature].map(randomText).join('.')}`;
}

const randomText = (length: number): string =>
  randomBytes(length).toString('base64url').slice(0, length);

/** Name under which an installation's tokens are counted and limited. */
const installationName = (app: SimulatedApp, installation: SimulatedInstallation): string =>
  `app-${app.id}-${installation.id}`;

export const sees = (credential: Credential, scope: ScopePath): boolean =>
  credential.scopes.some((pattern) => matchesGlob(pattern, scope));

function bearer(authorization: string | undefined): string | undefined {
  const match = /^(?:bearer|token)\s+(\S+)$/i.exec(authorization ?? '');
  return match?.[1];
}

function decode(part: string | undefined): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part ?? '', 'base64url').toString());
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined; // not a token at all: the caller answers 401
  }
}
