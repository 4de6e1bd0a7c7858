/** The Secret that passes the registration of one runner to its pod. Pure. */
import type { V1Secret } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { podName } from '../naming.ts';
import type { Registration } from '../../ports/ciServer.ts';
import {
  CREDENTIAL_ANNOTATION,
  RUNNER_ID_ANNOTATION,
  RUNNER_NAME_ANNOTATION,
  SCOPE_ANNOTATION,
  identityAnnotations,
  installationLabels,
  workflowLabel,
} from './metadata.ts';
import type { Scope } from '../../../core/domain/ciServer.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';

/**
 * Returns the Secret of a registration. It has the name of the pod. It is immutable, so that the
 * kubelet fetches it once and does not watch it.
 */
export function registrationSecret(
  identity: RunnerIdentity,
  registration: Registration,
  installation: string,
): V1Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    immutable: true,
    metadata: {
      name: podName(identity),
      labels: installationLabels(installation, workflowLabel(identity)),
      annotations: { ...identityAnnotations(identity), ...registrationAnnotations(registration) },
    },
    data: Object.fromEntries(
      Object.entries(registration.env).map(([key, value]) => [
        key,
        Buffer.from(value, 'utf8').toString('base64'),
      ]),
    ),
  };
}

/** Returns the fields of a registration that are not secret, as annotations. */
export function registrationAnnotations({
  runnerName,
  runnerId,
  at,
}: Registration): Record<string, string> {
  return omitUndefined({
    [RUNNER_NAME_ANNOTATION]: runnerName,
    [RUNNER_ID_ANNOTATION]: runnerId,
    [SCOPE_ANNOTATION]: at && `${at.scope.kind}/${at.scope.name}`,
    [CREDENTIAL_ANNOTATION]: at?.credential,
  });
}

/**
 * Reads the annotations of {@link registrationAnnotations}.
 * @returns `undefined` if there are none
 */
export function parseRegistrationAnnotations(
  annotations: Readonly<Record<string, string>> = {},
): Omit<Registration, 'env'> | undefined {
  const {
    [RUNNER_NAME_ANNOTATION]: runnerName,
    [RUNNER_ID_ANNOTATION]: runnerId,
    [SCOPE_ANNOTATION]: at = '',
    [CREDENTIAL_ANNOTATION]: credential,
  } = annotations;
  if (runnerName === undefined) return undefined;
  const [, kind, name] = /^(organization|repository|enterprise)\/(.+)$/.exec(at) ?? [];
  const scope =
    kind === undefined || name === undefined ? undefined : { kind: kind as Scope['kind'], name };
  return omitUndefined({
    runnerName,
    runnerId,
    at: scope && credential !== undefined ? { scope, credential } : undefined,
  });
}

/** Reads the Secret of {@link registrationSecret}. */
export function parseRegistrationSecret(secret: V1Secret): Registration {
  return {
    runnerName: '',
    ...parseRegistrationAnnotations(secret.metadata?.annotations),
    env: Object.fromEntries(
      Object.entries(secret.data ?? {}).map(([key, value]) => [
        key,
        Buffer.from(value, 'base64').toString('utf8'),
      ]),
    ),
  };
}
