import {
  AuthorizationV1Api,
  KubeConfig,
  KubernetesObjectApi,
  type CoreV1Api,
  type KubernetesObject,
  type V1ResourceAttributes,
  type V1Role,
} from '@kubernetes/client-node';
import { parseAllDocuments } from 'yaml';
import { until } from './until.ts';

/** Creates the objects of a manifest. */
export async function applyManifest(kubeConfig: KubeConfig, yaml: string): Promise<void> {
  const objects = kubeConfig.makeApiClient(KubernetesObjectApi);
  for (const document of parseAllDocuments(yaml))
    await objects.create(document.toJS() as KubernetesObject);
}

/** Waits until the API server grants all permissions of the manifest's Roles to the account. */
export async function awaitRoles(account: KubeConfig, yaml: string): Promise<void> {
  const authorization = account.makeApiClient(AuthorizationV1Api);
  const isAllowed = async (resourceAttributes: V1ResourceAttributes): Promise<boolean> => {
    const { status } = await authorization.createSelfSubjectAccessReview({
      body: { spec: { resourceAttributes } },
    });
    return status?.allowed === true;
  };
  const granted = parseAllDocuments(yaml)
    .map((document) => document.toJS() as V1Role)
    .filter(({ kind }) => kind === 'Role')
    .flatMap(grantsOf);
  await until('the permissions to be in force', async () =>
    (await Promise.all(granted.map(isAllowed))).every(Boolean),
  );
}

/** Returns the permissions that a Role grants, one by one. */
function grantsOf({ metadata, rules = [] }: V1Role): V1ResourceAttributes[] {
  const place = metadata?.namespace === undefined ? {} : { namespace: metadata.namespace };
  return rules.flatMap(({ apiGroups = [], resources = [], resourceNames = [''], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        resourceNames.flatMap((name) =>
          verbs.map((verb) => ({
            ...place,
            group,
            resource,
            verb,
            ...(name === '' ? {} : { name }),
          })),
        ),
      ),
    ),
  );
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
