import { type CiServer, type CiServers, UnknownCredentialError } from '../ports/ciServer.ts';
import type { RequestLogger } from '../ports/logger.ts';
import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import { restrictCiServer } from './restrictedCiServer.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Credentials } from './credentials.ts';
import type { RestApiOptions } from './github/restRequest.ts';
import { GitHubCiServer } from './github/gitHubCiServer.ts';
import { GiteaCiServer } from './gitea/giteaCiServer.ts';
import type { RequestObserver } from './requestObserver.ts';

/** Creates the adapter of a kind of CI server. */
const ADAPTERS: Readonly<
  Record<CiServerKind, (options: RestApiOptions) => CiServer & { close(): Promise<void> }>
> = {
  github: (options) => new GitHubCiServer(options),
  gitea: (options) => new GiteaCiServer(options),
};

const IDLE_TIMEOUT: RequestLogger = {
  debug: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Options of {@link createCiServers}. */
export interface CiServersOptions {
  /**
   * Logger of requests (debug level) and failures.
   * @default nothing is logged
   */
  readonly logger?: RequestLogger;
  readonly clock?: Clock;
  /** Called after every request, for metrics. */
  readonly onRequest?: RequestObserver;
}

/**
 * Creates the CI server clients of a worker, one per credential. Requests with the same credential
 * share their rate limit, retries and tokens, so call this once per process.
 * @throws CredentialsError if a `caFile` cannot be read
 */
export function createCiServers(
  credentials: Credentials,
  options: CiServersOptions = {},
): CiServers & { close(): Promise<void> } {
  const { logger = IDLE_TIMEOUT, clock = systemClock, onRequest } = options;
  const adapters = Object.entries(credentials).map(([name, credential]) => ({
    name,
    credential,
    server: ADAPTERS[credential.server]({ name, credential, logger, clock, onRequest }),
  }));
  const servers = new Map(
    adapters.map(({ name, credential, server }) => [
      name,
      restrictCiServer(server, name, credential),
    ]),
  );
  return {
    get(name: string): CiServer {
      const server = servers.get(name);
      if (server !== undefined) return server;
      const known = [...servers.keys()].map((each) => `"${each}"`).join(', ');
      throw new UnknownCredentialError(
        `unknown credential "${name}": the worker's config names ${known === '' ? 'none' : known}`,
      );
    },
    /** Closes the connections. */
    async close(): Promise<void> {
      await Promise.all(adapters.map(async ({ server }) => await server.close()));
    },
  };
}
