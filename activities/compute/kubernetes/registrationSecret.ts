/** The Secret that carries one runner's registration to its pod. Pure. */
import type { V1Secret } from '@kubernetes/client-node';
import { defined } from '../../../core/defined.ts';
import { podName } from '../naming.ts';
import type { Registration } from '../../ports.ts';
import { RUNNER_ID_ANNOTATION, RUNNER_NAME_ANNOTATION, identityAnnotations, ownLabels, workflowLabel } from './metadata.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';

/** Named as the pod; immutable, so that the kubelet fetches it once and does not watch it. */
export function registrationSecret(identity: RunnerIdentity, registration: Registration, installation: string): V1Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    immutable: true,
    metadata: {
      name: podName(identity),
      labels: ownLabels(installation, workflowLabel(identity)),
      annotations: defined({
        ...identityAnnotations(identity),
        [RUNNER_NAME_ANNOTATION]: registration.runnerName,
        [RUNNER_ID_ANNOTATION]: registration.runnerId?.toString(),
      }),
    },
    data: Object.fromEntries(Object.entries(registration.env).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')])),
  };
}

/** What {@link registrationSecret} put in. */
export function registrationOf(secret: V1Secret): Registration {
  const annotations = secret.metadata?.annotations ?? {};
  const runnerId = annotations[RUNNER_ID_ANNOTATION];
  return defined({
    runnerName: annotations[RUNNER_NAME_ANNOTATION] ?? '',
    runnerId: runnerId === undefined ? undefined : Number(runnerId),
    env: Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')])),
  });
}
