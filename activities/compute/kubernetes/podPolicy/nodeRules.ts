import type { V1Container } from '@kubernetes/client-node';
import { PRIVILEGED_CONTEXT_FIELDS } from './allowedFields.ts';
import {
  all,
  containerViolations,
  defined,
  everyContainer,
  everyVolume,
  isCovered,
  type MaybeViolation,
  type PodRule,
  volumeViolations,
} from './podRule.ts';
import { matchesAny } from './patterns.ts';

/** Pod fields by their names in the `host` list of the policy. */
const HOST = { network: 'hostNetwork', pid: 'hostPID', ipc: 'hostIPC' } as const;

function profiles(
  {
    seccompProfile,
    appArmorProfile,
    ...context
  }: Pick<
    NonNullable<V1Container['securityContext']>,
    'seccompProfile' | 'appArmorProfile' | (typeof PRIVILEGED_CONTEXT_FIELDS)[number]
  >,
  path: string,
): MaybeViolation[] {
  return [
    seccompProfile?.type === 'Unconfined' && `${path}.seccompProfile: Unconfined`,
    appArmorProfile?.type === 'Unconfined' && `${path}.appArmorProfile: Unconfined`,
    ...PRIVILEGED_CONTEXT_FIELDS.map(
      (field) => context[field] !== undefined && `${path}.${field}: another context of the node`,
    ),
  ];
}

/** Returns the same rule as a CEL expression. @param context - expression of a security context */
function isConfined(context: string): string {
  return [
    ...['seccompProfile', 'appArmorProfile'].map(
      (field) => `(!has(${context}.${field}) || ${context}.${field}.type != "Unconfined")`,
    ),
    ...PRIVILEGED_CONTEXT_FIELDS.map((field) => `!has(${context}.${field})`),
  ].join(' && ');
}

/** Returns a path without slashes at its end. */
export const trimmed = (path: string): string => path.replace(/\/+$/, '');

/**
 * Returns whether the path is in one of the directories.
 * @throws TypeError if the path is not a string, like {@link matchesAny}
 */
function isUnder(folders: readonly string[], path: string): boolean {
  if (typeof path !== 'string') throw new TypeError('a path that is not a string');
  return folders.map(trimmed).some((folder) => path === folder || path.startsWith(`${folder}/`));
}

/** Rules of what a pod may use of its node. */
export const NODE_RULES: readonly PodRule[] = [
  {
    field: 'hostPaths',
    violations: (pod, { hostPaths }) =>
      volumeViolations(pod, ({ hostPath }, path) => [
        hostPath !== undefined &&
          !isUnder(hostPaths, hostPath.path) &&
          `${path}.hostPath: the node's "${hostPath.path}"`,
      ]),
    cel: everyVolume(
      '!has(v.hostPath) || variables.policy.hostPaths.exists(p, v.hostPath.path == p || v.hostPath.path.startsWith(p + "/"))',
    ),
  },
  {
    field: 'host',
    violations: (pod, { host, userNamespaces }) => [
      ...defined(
        Object.entries(HOST).map(
          ([name, field]) =>
            pod.spec[field] === true &&
            !host.includes(name as keyof typeof HOST) &&
            `${field}: the node's ${name}`,
        ),
      ),
      ...defined([
        userNamespaces &&
          pod.spec.hostUsers !== false &&
          !host.includes('users') &&
          "hostUsers: the node's users",
      ]),
      ...(host.includes('network')
        ? []
        : containerViolations(pod, ({ ports = [] }, path) =>
            ports.map(
              ({ hostPort }, i) =>
                hostPort !== undefined &&
                hostPort !== 0 &&
                `${path}.ports[${i}].hostPort: a port of the node`,
            ),
          )),
    ],
    cel: [
      ...Object.entries(HOST).map(
        ([name, field]) =>
          `("${name}" in variables.policy.host || !has(object.spec.${field}) || !object.spec.${field})`,
      ),
      '(!variables.policy.userNamespaces || "users" in variables.policy.host || (has(object.spec.hostUsers) && !object.spec.hostUsers))',
      `("network" in variables.policy.host || ${everyContainer(all('c.ports', 'p', '!has(p.hostPort) || p.hostPort == 0'))})`,
    ].join(' && '),
  },
  {
    field: 'privileged',
    violations: (pod, { privileged }) => {
      if (privileged) return [];
      const { securityContext: ofPod = {} } = pod.spec;
      return [
        ...defined([
          (ofPod.sysctls?.length ?? 0) > 0 && 'securityContext.sysctls: settings of the node',
          ...profiles(ofPod, 'securityContext'),
        ]),
        ...containerViolations(pod, ({ securityContext: own = {} }, path) => [
          own.privileged === true && `${path}.securityContext.privileged: a privileged container`,
          own.procMount !== undefined &&
            !matchesAny(['Default'], own.procMount) &&
            `${path}.securityContext.procMount: "${own.procMount}"`,
          ...profiles(own, `${path}.securityContext`),
        ]),
      ];
    },
    cel: `variables.policy.privileged || (${[
      everyContainer(
        `!has(c.securityContext) || ((!has(c.securityContext.privileged) || !c.securityContext.privileged) && (!has(c.securityContext.procMount) || c.securityContext.procMount == "Default") && ${isConfined('c.securityContext')})`,
      ),
      `(!has(object.spec.securityContext) || ((!has(object.spec.securityContext.sysctls) || size(object.spec.securityContext.sysctls) == 0) && ${isConfined('object.spec.securityContext')}))`,
    ].join(' && ')})`,
  },
  {
    field: 'capabilities',
    violations: (pod, { capabilities }) =>
      containerViolations(pod, ({ securityContext }, path) =>
        (securityContext?.capabilities?.add ?? []).map(
          (name) =>
            !matchesAny(capabilities, name) && `${path}.securityContext.capabilities: ${name}`,
        ),
      ),
    cel: everyContainer(
      `!has(c.securityContext) || !has(c.securityContext.capabilities) || ${all('c.securityContext.capabilities.add', 'a', isCovered('a', 'capabilities'))}`,
    ),
  },
];
