import {
  KubeConfig,
  KubernetesObjectApi,
  type CoreV1Api,
  type KubernetesObject,
} from '@kubernetes/client-node';
import { parseAllDocuments } from 'yaml';

/** Creates the objects of a manifest. */
export async function applyManifest(kubeConfig: KubeConfig, yaml: string): Promise<void> {
  const objects = kubeConfig.makeApiClient(KubernetesObjectApi);
  for (const document of parseAllDocuments(yaml))
    await objects.create(document.toJS() as KubernetesObject);
}

/** Acts as a service account of a namespace. */
export async function actAs(
  name: string,
  {
    namespace,
    core,
    kubeConfig,
  }: { readonly namespace: string; readonly core: CoreV1Api; readonly kubeConfig: KubeConfig },
): Promise<KubeConfig> {
  const { status } = await core.createNamespacedServiceAccountToken({
    name,
    namespace,
    body: { spec: { audiences: ['https://kubernetes.default.svc'], expirationSeconds: 3_600 } },
  });
  const cluster = kubeConfig.getCurrentCluster();
  if (cluster === null) throw new Error('the kubeconfig has no cluster');
  const config = new KubeConfig();
  config.loadFromClusterAndUser(cluster, { name, token: status?.token ?? '' });
  return config;
}
