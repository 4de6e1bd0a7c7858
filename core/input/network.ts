/** Fields `proxy` and `ca` of a runner's input. Pure. */
import { z } from 'zod';
import type {
  CertificateAuthority,
  InputError,
  RunnerInput,
  RunnerProxy,
} from '../contract/index.ts';
import { CA_VARIABLES, proxyVariables } from '../domain/network.ts';
import { RUNNER_CONTAINER } from '../domain/podTemplate.ts';
import type { FieldsOf } from './fields.ts';

const objectName = (kind: string) =>
  z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, `must be the name of a ${kind}`);

// Only host and port, because the URL becomes part of variables in which the kubelet would expand
// `$(NAME)`.
const proxyServer = z.strictObject({
  url: z
    .string()
    .regex(
      /^https?:\/\/(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?\/?$/,
      'must be "http://host:port", without user and password: credentialSecretRef names the Secret with these',
    ),
  credentialSecretRef: objectName('Secret').exactOptional(),
});
const keyRef = (kind: string) =>
  z.strictObject({
    name: objectName(kind),
    key: z.string().regex(/^[-._a-zA-Z0-9]{1,253}$/, `must be a key of the ${kind}`),
  });

/** Schema of a runner's field `proxy`. Unknown fields are errors. */
export const proxySchema = z.strictObject({
  http: proxyServer.exactOptional(),
  https: proxyServer.exactOptional(),
  noProxy: z
    .array(z.string().regex(/^[A-Za-z0-9._:*/[\]-]+$/, 'must be a host, such as "example.com"'))
    .max(500, 'must have at most 500 hosts')
    .exactOptional(),
} satisfies FieldsOf<RunnerProxy>);

/**
 * Schema of a runner's field `ca`. {@link networkErrors} checks that exactly one reference is set.
 */
export const caSchema = z.strictObject({
  configMapKeyRef: keyRef('ConfigMap').exactOptional(),
  secretKeyRef: keyRef('Secret').exactOptional(),
} satisfies FieldsOf<CertificateAuthority>);

/**
 * Returns the errors of fields that conflict with each other or with the runner's own variables.
 */
export function networkErrors({ proxy, ca, env = {}, pod }: RunnerInput): InputError[] {
  const errors: InputError[] = [];
  if (ca !== undefined && Object.keys(ca).length !== 1)
    errors.push({
      code: 'conflict',
      field: 'ca',
      message: 'must have exactly one of configMapKeyRef and secretKeyRef',
    });
  const set = new Map([
    ...Object.keys(proxyVariables(proxy ?? {})).map((name) => [name, 'proxy'] as const),
    ...(ca === undefined ? [] : CA_VARIABLES.map((name) => [name, 'ca'] as const)),
  ]);
  const clash = (name: string, field: string): void => {
    const by = set.get(name);
    if (by !== undefined)
      errors.push({ code: 'conflict', field, message: `is set by ${by}; remove one of the two` });
  };
  for (const name of Object.keys(env)) clash(name, `env.${name}`);
  for (const name of variablesOf(pod))
    clash(name, `pod.spec.containers: the variable ${name} of the container ${RUNNER_CONTAINER}`);
  return errors;
}

/**
 * Returns the variables of the runner container in the template. Its shape is not validated here.
 */
function variablesOf(pod: RunnerInput['pod']): string[] {
  const containers = pod?.spec?.['containers'];
  const runner = (
    Array.isArray(containers) ? (containers as ({ name?: unknown; env?: unknown } | null)[]) : []
  ).find((container) => container?.name === RUNNER_CONTAINER);
  return Array.isArray(runner?.env)
    ? runner.env.flatMap((variable: { name?: unknown } | null) =>
        typeof variable?.name === 'string' ? [variable.name] : [],
      )
    : [];
}
