/**
 * Determines the Pod Security level that a pod needs, by the standards of Kubernetes 1.34:
 * https://kubernetes.io/docs/concepts/security/pod-security-standards/ Pure.
 */
import type {
  V1Container,
  V1PodSecurityContext,
  V1PodSpec,
  V1SecurityContext,
  V1Volume,
} from '@kubernetes/client-node';

/** Levels of the Pod Security Standards, strictest first. */
export type PodSecurityLevel = 'restricted' | 'baseline' | 'privileged';

/** Strictest Pod Security level that admits a pod, with the reasons. */
export interface PodSecurity {
  readonly level: PodSecurityLevel;
  /** Fields that prevent a stricter level. Fields of a container follow its name. */
  readonly reasons: readonly string[];
}

type Context = V1PodSecurityContext & V1SecurityContext;

const BASELINE_CAPABILITIES = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
];
const SELINUX_TYPES = [
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
];
const SAFE_SYSCTLS = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
];
const RESTRICTED_VOLUMES: readonly (keyof V1Volume)[] = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

/** Returns the strictest level whose namespace accepts the pod. */
export function podSecurity(spec: V1PodSpec): PodSecurity {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const beyondBaseline = [
    ...podBeyondBaseline(spec),
    ...contextBeyondBaseline(spec.securityContext),
    ...containers.flatMap((container) => inContainer(container, containerBeyondBaseline)),
  ];
  if (beyondBaseline.length > 0) return { level: 'privileged', reasons: beyondBaseline };
  const beyondRestricted = [
    ...(spec.volumes ?? [])
      .filter((volume) => RESTRICTED_VOLUMES.every((type) => volume[type] === undefined))
      .map(({ name }) => `volume ${name}`),
    ...containers.flatMap((container) =>
      inContainer(container, (each) => containerBeyondRestricted(each, spec.securityContext)),
    ),
  ];
  return beyondRestricted.length > 0
    ? { level: 'baseline', reasons: beyondRestricted }
    : { level: 'restricted', reasons: [] };
}

const inContainer = (
  container: V1Container,
  reasonsOf: (container: V1Container) => string[],
): string[] => reasonsOf(container).map((reason) => `${container.name}: ${reason}`);

function podBeyondBaseline(spec: V1PodSpec): string[] {
  const host = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter(
    (field) => spec[field] === true,
  );
  const sysctls = (spec.securityContext?.sysctls ?? []).filter(
    ({ name }) => !SAFE_SYSCTLS.includes(name),
  );
  return [
    ...host,
    ...(spec.volumes ?? [])
      .filter(({ hostPath }) => hostPath !== undefined)
      .map(({ name }) => `hostPath of volume ${name}`),
    ...sysctls.map(({ name }) => `sysctl ${name}`),
  ];
}

function containerBeyondBaseline(container: V1Container): string[] {
  const { securityContext: context, ports = [] } = container;
  const added = (context?.capabilities?.add ?? []).filter(
    (name) => !BASELINE_CAPABILITIES.includes(name),
  );
  const probes = [container.livenessProbe, container.readinessProbe, container.startupProbe];
  const handlers = [...probes, container.lifecycle?.postStart, container.lifecycle?.preStop];
  return [
    ...(context?.privileged === true ? ['privileged'] : []),
    ...added.map((name) => `capability ${name}`),
    ...(ports.some(({ hostPort = 0 }) => hostPort !== 0) ? ['hostPort'] : []),
    ...((context?.procMount ?? 'Default') === 'Default' ? [] : ['procMount']),
    ...(handlers.some((handler) => (handler?.httpGet?.host ?? '') !== '') ? ['httpGet.host'] : []),
    ...contextBeyondBaseline(context),
  ];
}

function contextBeyondBaseline(context: Context | undefined): string[] {
  const { seLinuxOptions: selinux } = context ?? {};
  const isConfined = SELINUX_TYPES.includes(selinux?.type ?? '');
  return [
    ...(context?.windowsOptions?.hostProcess === true ? ['windowsOptions.hostProcess'] : []),
    ...(context?.appArmorProfile?.type === 'Unconfined' ? ['appArmorProfile Unconfined'] : []),
    ...(context?.seccompProfile?.type === 'Unconfined' ? ['seccompProfile Unconfined'] : []),
    ...(isConfined && !selinux?.user && !selinux?.role ? [] : ['seLinuxOptions']),
  ];
}

function containerBeyondRestricted(
  { securityContext: own }: V1Container,
  ofPod: V1PodSecurityContext | undefined,
): string[] {
  const added = (own?.capabilities?.add ?? []).filter((name) => name !== 'NET_BIND_SERVICE');
  const isDropped = (own?.capabilities?.drop ?? []).includes('ALL');
  const seccomp = own?.seccompProfile?.type ?? ofPod?.seccompProfile?.type;
  return [
    ...(own?.allowPrivilegeEscalation === false ? [] : ['allowPrivilegeEscalation: false']),
    ...(isDropped ? [] : ['capabilities: {drop: [ALL]}']),
    ...added.map((name) => `capability ${name}`),
    ...((own?.runAsNonRoot ?? ofPod?.runAsNonRoot) === true ? [] : ['runAsNonRoot: true']),
    ...((own?.runAsUser ?? ofPod?.runAsUser) === 0 ? ['runAsUser 0'] : []),
    ...(seccomp === undefined ? ['seccompProfile: {type: RuntimeDefault}'] : []),
  ];
}
