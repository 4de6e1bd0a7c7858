/** Pods at each level of the Pod Security Standards: a case for each control. */
import type { V1PodSpec } from '@kubernetes/client-node';
import type { PodSecurityLevel } from '../../cli/migrate/podSecurityLevel.ts';

const CONFINED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL' as string] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};
const spec = (more: Partial<V1PodSpec> = {}): V1PodSpec => ({
  containers: [{ name: 'runner', securityContext: CONFINED }],
  ...more,
});
const container = (
  securityContext: object,
  more: object = {},
  pod: Partial<V1PodSpec> = {},
): V1PodSpec =>
  spec({
    containers: [{ name: 'runner', securityContext: { ...CONFINED, ...securityContext }, ...more }],
    ...pod,
  });
const { runAsNonRoot: _nonRoot, seccompProfile: _seccomp, ...bare } = CONFINED;

/** A pod, the lowest level whose namespace accepts it, and one of the reasons. */
export type PodSecurityCase = readonly [
  what: string,
  pod: V1PodSpec,
  level: PodSecurityLevel,
  reason: string | undefined,
];

export const POD_SECURITY_CASES: readonly PodSecurityCase[] = [
  ['all that is asked for', spec(), 'restricted', undefined],
  [
    'by the pod',
    spec({
      securityContext: {
        runAsNonRoot: true,
        seccompProfile: { type: 'Localhost', localhostProfile: 'runner.json' },
      },
      containers: [{ name: 'runner', securityContext: bare }],
    }),
    'restricted',
    undefined,
  ],
  [
    'low ports',
    container({ capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } }),
    'restricted',
    undefined,
  ],
  [
    'a claim',
    spec({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] }),
    'restricted',
    undefined,
  ],
  ['no context', spec({ containers: [{ name: 'a' }] }), 'baseline', 'a: runAsNonRoot: true'],
  [
    'an init container without',
    spec({ initContainers: [{ name: 'i' }] }),
    'baseline',
    'i: capabilities: {drop: [ALL]}',
  ],
  [
    'escalation',
    container({ allowPrivilegeEscalation: true }),
    'baseline',
    'runner: allowPrivilegeEscalation: false',
  ],
  ['root', container({ runAsUser: 0 }), 'baseline', 'runner: runAsUser 0'],
  [
    'a usual capability',
    container({ capabilities: { drop: ['ALL'], add: ['CHOWN'] } }),
    'baseline',
    'runner: capability CHOWN',
  ],
  [
    'another kind of volume',
    spec({ volumes: [{ name: 'v', nfs: { path: '/', server: 's' } }] }),
    'baseline',
    'volume v',
  ],
  [
    'privileged',
    container({ privileged: true, allowPrivilegeEscalation: true }),
    'privileged',
    'runner: privileged',
  ],
  [
    'a capability',
    container({ capabilities: { add: ['SYS_ADMIN'] } }),
    'privileged',
    'runner: capability SYS_ADMIN',
  ],
  ['the host', spec({ hostNetwork: true }), 'privileged', 'hostNetwork'],
  [
    'a folder of the node',
    spec({ volumes: [{ name: 'v', hostPath: { path: '/' } }] }),
    'privileged',
    'hostPath of volume v',
  ],
  [
    'a port of the node',
    container({}, { ports: [{ containerPort: 1, hostPort: 1 }] }),
    'privileged',
    'runner: hostPort',
  ],
  [
    'seccomp off',
    container({ seccompProfile: { type: 'Unconfined' } }),
    'privileged',
    'runner: seccompProfile Unconfined',
  ],
  [
    'AppArmor off',
    spec({ securityContext: { appArmorProfile: { type: 'Unconfined' } } }),
    'privileged',
    'appArmorProfile Unconfined',
  ],
  [
    'SELinux',
    container({ seLinuxOptions: { type: 'spc_t' } }),
    'privileged',
    'runner: seLinuxOptions',
  ],
  [
    '/proc',
    container({ procMount: 'Unmasked' }, {}, { hostUsers: false }),
    'privileged',
    'runner: procMount',
  ],
  [
    'a sysctl',
    spec({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
    'privileged',
    'sysctl kernel.msgmax',
  ],
  [
    'a process of the host',
    container({ windowsOptions: { hostProcess: true } }, {}, { hostNetwork: true }),
    'privileged',
    'runner: windowsOptions.hostProcess',
  ],
  [
    'a probe of another host',
    container({}, { livenessProbe: { httpGet: { host: 'h', port: 1 } } }),
    'privileged',
    'runner: httpGet.host',
  ],
];
