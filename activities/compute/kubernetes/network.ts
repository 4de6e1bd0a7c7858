/**
 * Parts of a pod for network access: variables for its proxy, and a file with the trusted
 * certificate authorities. Pure.
 */
import type { V1EnvVar, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import type { CertificateAuthority } from '../../../core/contract/index.ts';
import { CA_VARIABLES, proxyVariables } from '../../../core/domain/network.ts';
import type { PodRequest } from '../../../core/domain/pod.ts';
import { CA_PATH, RESERVED_VOLUME_PREFIX } from '../../../core/domain/podTemplate.ts';

/** Parts that the runner container and the registration container need. */
export interface NetworkPodParts {
  /** Environment variables. The order matters: some refer to earlier ones. */
  readonly env: V1EnvVar[];
  readonly mounts: V1VolumeMount[];
  readonly volumes: V1Volume[];
}

const CA_VOLUME = `${RESERVED_VOLUME_PREFIX}ca`;
const CA_FILE = 'ca.crt';

/**
 * Returns the parts of a pod that configure the proxy and the trusted certificate authorities of
 * its runner.
 */
export function networkPodParts({
  proxy = {},
  ca,
}: Pick<PodRequest, 'proxy' | 'ca'>): NetworkPodParts {
  const env = Object.entries(proxyVariables(proxy)).map(([name, variable]): V1EnvVar =>
    'value' in variable
      ? { name, value: variable.value }
      : { name, valueFrom: { secretKeyRef: { name: variable.secret, key: variable.key } } },
  );
  if (ca === undefined) return { env, mounts: [], volumes: [] };
  return {
    env: [...env, ...CA_VARIABLES.map((name) => ({ name, value: `${CA_PATH}/${CA_FILE}` }))],
    mounts: [{ name: CA_VOLUME, mountPath: CA_PATH, readOnly: true }],
    volumes: [{ name: CA_VOLUME, ...caSource(ca) }],
  };
}

function caSource({ configMapKeyRef, secretKeyRef }: CertificateAuthority): Omit<V1Volume, 'name'> {
  if (secretKeyRef !== undefined)
    return {
      secret: { secretName: secretKeyRef.name, items: [{ key: secretKeyRef.key, path: CA_FILE }] },
    };
  return {
    configMap: {
      name: configMapKeyRef?.name ?? '',
      items: [{ key: configMapKeyRef?.key ?? '', path: CA_FILE }],
    },
  };
}
