/**
 * Environment variables for the proxy and the certificate authorities of the processes in a runner
 * container. Pure.
 */
import type { ProxyServer, RunnerProxy } from '../contract/index.ts';

/** Value of a variable: the whole URL, or a part of it from a Secret. */
export type ProxyVariable =
  { readonly value: string } | { readonly secret: string; readonly key: 'username' | 'password' };

const SCHEMES = ['http', 'https'] as const;

/**
 * Returns the proxy variables in lower and upper case. GitHub's runner reads both and sets both for
 * its jobs (`https://github.com/actions/runner/blob/main/src/Runner.Sdk/RunnerWebProxy.cs`). But
 * curl reads `http_proxy` in lower case only
 * (https://everything.curl.dev/usingcurl/proxies/env.html), and other programs read only upper
 * case. User name and password are separate variables, which the kubelet inserts into the URL: a
 * variable may refer to those before it
 * (https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/).
 */
export function proxyVariables(proxy: RunnerProxy): Record<string, ProxyVariable> {
  const variables: Record<string, ProxyVariable> = {};
  const both = (name: string, value: string): void => {
    for (const each of [name, name.toUpperCase()]) variables[each] = { value };
  };
  for (const scheme of SCHEMES) {
    const server = proxy[scheme];
    if (server === undefined) continue;
    const [user, password] = [
      `HOLDFAST_${scheme.toUpperCase()}_PROXY_USERNAME`,
      `HOLDFAST_${scheme.toUpperCase()}_PROXY_PASSWORD`,
    ];
    if (server.credentialSecretRef !== undefined) {
      variables[user] = { secret: server.credentialSecretRef, key: 'username' };
      variables[password] = { secret: server.credentialSecretRef, key: 'password' };
    }
    both(`${scheme}_proxy`, withLogin(server, `$(${user}):$(${password})@`));
  }
  if (proxy.noProxy !== undefined && proxy.noProxy.length > 0)
    both('no_proxy', proxy.noProxy.join(','));
  return variables;
}

function withLogin({ url, credentialSecretRef }: ProxyServer, login: string): string {
  return credentialSecretRef === undefined ? url : url.replace('://', () => `://${login}`);
}

/**
 * Variables with the file of the certificate authorities. Node, which runs JavaScript actions, adds
 * them to its own (NODE_EXTRA_CA_CERTS, https://nodejs.org/api/cli.html#node_extra_ca_certsfile).
 * The runner itself is a .NET program, which on Linux reads the same as OpenSSL: that file instead
 * of `cert.pem`, in addition to the directory of the image (SSL_CERT_FILE,
 * https://github.com/dotnet/runtime/blob/main/src/libraries/System.Security.Cryptography/src/System/Security/Cryptography/X509Certificates/OpenSslCachedSystemStoreProvider.cs).
 * So does curl, and git has a variable of its own (GIT_SSL_CAINFO,
 * https://git-scm.com/docs/git-config#Documentation/git-config.txt-httpsslCAInfo).
 */
export const CA_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'GIT_SSL_CAINFO'] as const;
