import { writeFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import type { LabState } from '../../../tools/lab/lab.ts';
import { startWithholdingProxy, type WithholdingProxy } from './withholdingProxy.ts';

/**
 * Starts a proxy before the lab's API server, with the rights of its administrator.
 * @param folder - gets the kubeconfig for the proxy
 */
export async function startKubernetesProxy(
  lab: LabState,
  folder: string,
): Promise<{ proxy: WithholdingProxy; kubeconfig: string }> {
  const direct = new KubeConfig();
  direct.loadFromFile(lab.kubernetes?.kubeconfig ?? '');
  const credentials: RequestOptions = {};
  await direct.applyToHTTPSOptions(credentials);
  const proxy = await startWithholdingProxy({
    url: () => direct.getCurrentCluster()?.server ?? '',
    credentials,
  });
  const proxied = new KubeConfig();
  proxied.loadFromClusterAndUser(
    { name: 'proxy', server: proxy.url, skipTLSVerify: true },
    { name: 'nobody' },
  );
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, proxied.exportConfig());
  return { proxy, kubeconfig };
}
