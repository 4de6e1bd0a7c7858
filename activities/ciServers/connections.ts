import { readFileSync } from 'node:fs';
import { getCACertificates } from 'node:tls';
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { type Credential, CredentialsError } from './credentials.ts';

/**
 * Connections of one credential: through its proxy, else the environment's, else direct.
 * @throws CredentialsError when the `caFile` cannot be read
 */
export function createDispatcher(name: string, credential: Credential): Dispatcher {
  const { proxy } = credential;
  // One request per connection: what is in flight on a connection that breaks is one request, not ninety.
  const tls = { ...certificateAuthorities(name, credential), allowH2: false };
  return new EnvHttpProxyAgent({
    allowH2: false,
    connect: { timeout: 10_000, ...tls },
    requestTls: tls,
    // A proxy named for this credential is meant for it: NO_PROXY is about the environment's.
    ...(proxy === undefined ? {} : { httpProxy: proxy, httpsProxy: proxy, noProxy: '' }),
  });
}

/** Besides those that Node itself goes by, those of NODE_EXTRA_CA_CERTS included. */
function certificateAuthorities(name: string, { caFile }: Credential): { ca?: string[] } {
  if (caFile === undefined) return {};
  try {
    return { ca: [...getCACertificates('default'), readFileSync(caFile, 'utf8')] };
  } catch (error) {
    throw new CredentialsError([
      `credentials.${name}.caFile: cannot read ${caFile} (${(error as NodeJS.ErrnoException).code ?? String(error)}): name a readable PEM file`,
    ]);
  }
}
