import {
  createCiServers,
  type CiServersOptions,
  parseCredentials,
} from '../../activities/ciServers/index.ts';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import { CiServerError } from '../../activities/ports/ciServerError.ts';

/** The CI server of one credential, and a function that closes its connections. */
export function ciServerOf(
  credential: Record<string, unknown>,
  options: CiServersOptions = {},
): { server: CiServer; close: () => Promise<void> } {
  const servers = createCiServers(parseCredentials({ default: credential }), options);
  return { server: servers.get('default'), close: () => servers.close() };
}

/** The error of a failed call. */
export async function ciServerError(promise: Promise<unknown>): Promise<CiServerError> {
  const error = await promise.then(
    (value) => new Error(`expected a failure, got ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof CiServerError)) throw error;
  return error;
}
