/** The variables by which what runs in a runner's container finds its proxy and its certificate authorities. Pure. */
import type { ProxyServer, RunnerProxy } from '../contract/index.ts';

/** A variable: of the whole address, or the part of it that a Secret has. */
export type ProxyVariable =
  { readonly value: string } | { readonly secret: string; readonly key: 'username' | 'password' };

const SCHEMES = ['http', 'https'] as const;

/**
 * In lower case and in upper case: GitHub's runner reads both, and sets both for its jobs (`https://github.com/actions/runner/blob/main/src/Runner.Sdk/RunnerWebProxy.cs`),
 * but curl takes `http_proxy` in lower case alone (https://everything.curl.dev/usingcurl/proxies/env.html), and others only what is in upper case. User and password
 * are variables of their own, which the kubelet puts into the address: a variable may refer to those before it
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
 * Each names the file with the authorities. Node, in which JavaScript actions run, adds them to its own (NODE_EXTRA_CA_CERTS,
 * https://nodejs.org/api/cli.html#node_extra_ca_certsfile). The runner itself is .NET, which on Linux reads what OpenSSL reads, that file in place of
 * `cert.pem` and beside the folder of the image's own (SSL_CERT_FILE,
 * https://github.com/dotnet/runtime/blob/main/src/libraries/System.Security.Cryptography/src/System/Security/Cryptography/X509Certificates/OpenSslCachedSystemStoreProvider.cs).
 * So does curl, and git by a name of its own (GIT_SSL_CAINFO, https://git-scm.com/docs/git-config#Documentation/git-config.txt-httpsslCAInfo).
 */
export const CA_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'GIT_SSL_CAINFO'] as const;
