/**
 * Loads the configuration of the cluster connection: one KubeConfig per process, which all its
 * clients share.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';

const TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** Source of the connection to a cluster. */
export interface KubeConfigSource {
  /**
   * Path of a kubeconfig file.
   * @default as controller-runtime does: the files of KUBECONFIG, otherwise the service account of
   * the pod, otherwise ~/.kube/config
   */
  readonly path?: string;
  /**
   * Context of the kubeconfig file.
   * @default its current context
   */
  readonly context?: string;
}

/** No usable cluster configuration. The message is one line and names the setting to change. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
}

/**
 * Loads the configuration of the cluster connection.
 * @throws KubeConfigError if the file or context does not exist, or no cluster is configured
 */
export function loadKubeConfig({ path, context }: KubeConfigSource = {}): KubeConfig {
  const config = new KubeConfig();
  const from = path ?? process.env['KUBECONFIG'] ?? '~/.kube/config';
  try {
    load(config, path);
    if (context !== undefined) config.setCurrentContext(context);
  } catch (error) {
    const [line] = String((error as { message?: unknown }).message ?? error).split('\n');
    throw new KubeConfigError(`Cannot read the kubeconfig ${from}: ${line}`, { cause: error });
  }
  if (config.getCurrentCluster()) return config;
  const contexts = config.getContexts().map(({ name }) => name);
  if (contexts.length === 0) {
    if (path ?? process.env['KUBECONFIG'])
      throw new KubeConfigError(`The kubeconfig ${from} has no contexts: is it the right file?`);
    throw new KubeConfigError(
      'No cluster: set KUBECONFIG, name a kubeconfig file, or run in a pod with a service account',
    );
  }
  throw new KubeConfigError(
    `The kubeconfig ${from} has no context "${config.getCurrentContext()}" with a cluster; it has ${contexts.join(', ')}`,
  );
}

/**
 * Loads the file or the service account. KubeConfig.loadFromDefault is not used, because in a pod
 * it prefers ~/.kube/config, and without any configuration it uses http://localhost:8080.
 */
function load(config: KubeConfig, path: string | undefined): void {
  const home = join(homedir(), '.kube', 'config');
  if (path !== undefined) config.loadFromFile(path);
  else if (process.env['KUBECONFIG']) config.loadFromDefault();
  else if (process.env['KUBERNETES_SERVICE_HOST'] && existsSync(TOKEN)) config.loadFromCluster();
  else if (existsSync(home)) config.loadFromFile(home);
}
