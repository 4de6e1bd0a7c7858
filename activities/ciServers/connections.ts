import { readFileSync } from 'node:fs';
import { getCACertificates } from 'node:tls';
import { type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { type Credential, CredentialsError } from './credentials.ts';

/**
 * Creates the dispatcher for the requests of one credential. It uses the proxy of the credential,
 * otherwise the proxy of the environment, otherwise none.
 * @throws CredentialsError if the `caFile` cannot be read
 */
export function createDispatcher(name: string, credential: Credential): Dispatcher {
  const { proxy } = credential;
  // HTTP/1.1 has one request per connection. With HTTP/2, a broken connection would fail all of up
  // to 90 concurrent requests.
  const tls = { ...certificateAuthorities(name, credential), allowH2: false };
  return new EnvHttpProxyAgent({
    allowH2: false,
    connect: { timeout: 10_000, ...tls },
    requestTls: tls,
    // NO_PROXY concerns the proxy of the environment, not the one configured for this credential.
    ...(proxy === undefined ? {} : { httpProxy: proxy, httpsProxy: proxy, noProxy: '' }),
  });
}

/**
 * Returns the certificate authorities of `caFile` in addition to Node's own, which include those of
 * NODE_EXTRA_CA_CERTS.
 */
function certificateAuthorities(name: string, { caFile }: Credential): { ca?: string[] } {
  if (caFile === undefined) return {};
  try {
    return { ca: [...getCACertificates('default'), readFileSync(caFile, 'utf8')] };
  } catch (error) {
    throw new CredentialsError([
      `credentials.${name}.caFile: cannot read ${caFile} (${(error as NodeJS.ErrnoException).code ?? String(error)}); it must be a readable PEM file`,
    ]);
  }
}
