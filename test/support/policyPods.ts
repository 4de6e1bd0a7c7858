/**
 * Pods for pod policies, and the violations of each policy. Used for Holdfast's own check and for
 * that of the API server.
 */
import type { V1EnvVar, V1ObjectMeta, V1PodSpec } from '@kubernetes/client-node';
import {
  podPolicySchema,
  type PodPolicy,
} from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';

export const OWN_IMAGE = 'ghcr.io/acme/runner:1';
/** Name of the pod and of its registration's Secret. */
export const POD = 'runner-a-0123456789';
export const OWN_CLAIM = 'runner-a-0123456789-work';
/** The claim of the worker's store. */
export const OWN_STORE = 'artifacts';
/** The Secret with the key of the worker's bucket. */
export const OWN_STORE_SECRET = 'bucket-key';

export type PodField = keyof PodPolicy;

export interface PolicyCase {
  readonly what: string;
  readonly spec: Partial<V1PodSpec> & {
    readonly container?: Partial<V1PodSpec['containers'][number]>;
    readonly init?: Partial<V1PodSpec['containers'][number]>;
  };
  /** Metadata of the pod, except its name. */
  readonly metadata?: Pick<V1ObjectMeta, 'labels' | 'annotations'>;
  readonly policy: object;
  /** The rules that reject it. */
  readonly rejectedBy: readonly PodField[];
}

/** Returns a pod as Holdfast creates it, with the additions of the case. */
export function podOf({ container, init, ...spec }: PolicyCase['spec']): V1PodSpec {
  return {
    automountServiceAccountToken: false,
    restartPolicy: 'Never',
    ...spec,
    ...(init && { initContainers: [{ name: 'init', image: OWN_IMAGE, ...init }] }),
    containers: [
      {
        name: 'runner',
        image: OWN_IMAGE,
        env: [{ name: 'JIT', valueFrom: { secretKeyRef: { name: POD, key: 'JIT' } } }],
        ...container,
      },
    ],
    volumes: [
      { name: 'holdfast-info', downwardAPI: {} },
      { name: 'holdfast-supervisor', emptyDir: {} },
      { name: 'holdfast-claim-work', persistentVolumeClaim: { claimName: OWN_CLAIM } },
      ...(spec.volumes ?? []),
    ],
  };
}

export const policyOf = ({ policy }: PolicyCase): PodPolicy => podPolicySchema.parse(policy);

const volume = (source: object): PolicyCase['spec'] => ({ volumes: [{ name: 'v', ...source }] });
const token = { projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } };
const secretEnv = {
  container: {
    env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'github', key: 'token' } } }],
  },
};
const ownSecret = (key: string): V1EnvVar => ({
  name: 'A',
  valueFrom: { secretKeyRef: { name: POD, key } },
});
const storeAs = (name: string, claimName = OWN_STORE): PolicyCase['spec'] => ({
  volumes: [{ name, persistentVolumeClaim: { claimName } }],
});
const keyIn = (
  name: string,
  secret = OWN_STORE_SECRET,
  volumeName = 'holdfast-store',
): PolicyCase['spec'] => ({
  init: { name, volumeMounts: [{ name: volumeName, mountPath: '/store-key' }] },
  volumes: [{ name: volumeName, secret: { secretName: secret } }],
});
const ephemeral = (spec: object): object => ({
  ephemeral: {
    volumeClaimTemplate: {
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        ...spec,
      },
    },
  },
});
const claim = volume({ persistentVolumeClaim: { claimName: 'cache-3' } });
const node = volume({ hostPath: { path: '/var/cache/ci/npm' } });

export const POLICY_CASES: readonly PolicyCase[] = [
  { what: 'what Holdfast makes', spec: {}, policy: {}, rejectedBy: [] },
  {
    what: 'what Holdfast makes, of the strictest policy',
    spec: {},
    policy: { images: ['none'], volumes: [], runtimeClasses: [] },
    rejectedBy: [],
  },
  {
    what: 'another image',
    spec: { container: { image: 'docker.io/evil:1' } },
    policy: { images: ['ghcr.io/acme/*'] },
    rejectedBy: ['images'],
  },
  {
    what: 'another image of an init container',
    spec: { init: { image: 'ghcr.io/acme2/x' } },
    policy: { images: ['ghcr.io/acme/*'] },
    rejectedBy: ['images'],
  },
  {
    what: 'an image that only looks like it',
    spec: { container: { image: 'evil/ghcr.io/acme/x' } },
    policy: { images: ['ghcr.io/acme/*'] },
    rejectedBy: ['images'],
  },
  {
    what: 'a dot stands for itself',
    spec: { container: { image: 'ghcrXio/acme/x' } },
    policy: { images: ['ghcr.io/acme/*'] },
    rejectedBy: ['images'],
  },
  {
    what: 'an image by pattern',
    spec: { container: { image: 'ghcr.io/acme/x@sha256:00' } },
    policy: { images: ['a', 'ghcr.io/acme/*'] },
    rejectedBy: [],
  },
  {
    what: 'a service account',
    spec: { serviceAccountName: 'deployer' },
    policy: {},
    rejectedBy: ['serviceAccounts'],
  },
  {
    what: 'the token of the default service account',
    spec: { automountServiceAccountToken: true },
    policy: {},
    rejectedBy: ['serviceAccounts'],
  },
  { what: 'a projected token', spec: volume(token), policy: {}, rejectedBy: ['serviceAccounts'] },
  {
    what: 'a service account that may be',
    spec: { serviceAccountName: 'deployer', automountServiceAccountToken: true, ...volume(token) },
    policy: { serviceAccounts: ['deploy*'] },
    rejectedBy: [],
  },
  { what: 'a Secret in a variable', spec: secretEnv, policy: {}, rejectedBy: ['secrets'] },
  {
    what: 'a Secret in all variables',
    spec: { init: { envFrom: [{ secretRef: { name: 'github' } }] } },
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: 'a Secret as a volume',
    spec: volume({ secret: { secretName: 'github' } }),
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: 'a projected Secret',
    spec: volume({ projected: { sources: [{ secret: { name: 'github' } }] } }),
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: "another pod's registration",
    spec: volume({ secret: { secretName: 'runner-b-0123456789' } }),
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: "another pod's registration, where every name may be",
    spec: {
      container: {
        env: [
          { name: 'A', valueFrom: { secretKeyRef: { name: 'runner-b-0123456789', key: 'x' } } },
        ],
      },
    },
    policy: { secrets: ['*'] },
    rejectedBy: ['secrets'],
  },
  {
    what: 'a Secret named like one, which may be by its whole name',
    spec: volume({ secret: { secretName: 'kustomized-0123456789' } }),
    policy: { secrets: ['kustomized-0123456789'] },
    rejectedBy: [],
  },
  ...['init', 'runner'].map((name) => ({
    what: `the registration token in a variable of the container ${name}`,
    spec: { [name === 'init' ? 'init' : 'container']: { env: [ownSecret('RUNNER_TOKEN')] } },
    policy: { secrets: ['*', POD] },
    rejectedBy: ['secrets'] as const,
  })),
  {
    what: 'its own registration in another container',
    spec: { init: { env: [ownSecret('RUNNER_URL')] } },
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: 'its own registration as all variables',
    spec: { container: { envFrom: [{ secretRef: { name: POD } }] } },
    policy: { secrets: [POD] },
    rejectedBy: ['secrets'],
  },
  {
    what: 'its own registration as a volume',
    spec: volume({ secret: { secretName: POD } }),
    policy: { secrets: [POD] },
    rejectedBy: ['secrets'],
  },
  {
    what: 'the registration token where the runner registers',
    spec: { init: { name: 'holdfast-register', env: [ownSecret('RUNNER_TOKEN')] } },
    policy: {},
    rejectedBy: [],
  },
  {
    what: 'a Secret for pulling',
    spec: { imagePullSecrets: [{ name: 'github' }] },
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: 'Secrets that may be',
    spec: {
      ...secretEnv,
      ...volume({ secret: { secretName: 'npm' } }),
      imagePullSecrets: [{ name: 'github' }],
    },
    policy: { secrets: ['github', 'npm*'] },
    rejectedBy: [],
  },
  {
    what: "the worker's store, as Holdfast mounts it",
    spec: storeAs('holdfast-store'),
    policy: {},
    rejectedBy: [],
  },
  {
    what: 'the store under another name',
    spec: storeAs('mine'),
    policy: {},
    rejectedBy: ['claims'],
  },
  {
    what: 'another claim in its place',
    spec: storeAs('holdfast-store', 'cache-3'),
    policy: {},
    rejectedBy: ['claims'],
  },
  {
    what: "the key of the worker's bucket, as Holdfast gives it",
    spec: keyIn('holdfast-uploader'),
    policy: {},
    rejectedBy: [],
  },
  {
    what: 'a Secret that a step has in a variable, to be masked',
    spec: {
      ...secretEnv,
      volumes: [{ name: 'holdfast-masked-0', secret: { secretName: 'github' } }],
    },
    policy: { secrets: ['github'], volumes: [] },
    rejectedBy: [],
  },
  {
    what: 'a Secret as a volume where no kind may be',
    spec: volume({ secret: { secretName: 'github' } }),
    policy: { secrets: ['github'], volumes: [] },
    rejectedBy: ['volumes'],
  },
  { what: 'the same to what restores', spec: keyIn('holdfast-shared'), policy: {}, rejectedBy: [] },
  {
    what: 'the key in another container',
    spec: keyIn('init'),
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: 'the key in a volume of another name',
    spec: keyIn('holdfast-uploader', OWN_STORE_SECRET, 'mine'),
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: 'the key in a variable',
    spec: {
      init: {
        name: 'holdfast-uploader',
        env: [
          {
            name: 'AWS_ACCESS_KEY_ID',
            valueFrom: { secretKeyRef: { name: OWN_STORE_SECRET, key: 'AWS_ACCESS_KEY_ID' } },
          },
        ],
      },
    },
    policy: {},
    rejectedBy: ['secrets'],
  },
  {
    what: 'another Secret in its place',
    spec: keyIn('holdfast-uploader', 'github'),
    policy: {},
    rejectedBy: ['secrets'],
  },
  { what: 'a claim', spec: claim, policy: {}, rejectedBy: ['claims'] },
  { what: 'a claim that may be', spec: claim, policy: { claims: ['cache-*'] }, rejectedBy: [] },
  { what: 'a volume of its own', spec: volume(ephemeral({})), policy: {}, rejectedBy: [] },
  {
    what: "a copy of somebody's claim",
    spec: volume(ephemeral({ dataSource: { kind: 'PersistentVolumeClaim', name: 'cache-3' } })),
    policy: {},
    rejectedBy: ['claims'],
  },
  {
    what: "a copy of somebody's claim, by reference",
    spec: volume(ephemeral({ dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'cache-3' } })),
    policy: { claims: ['cache-4'] },
    rejectedBy: ['claims'],
  },
  {
    what: 'a copy of a claim that may be',
    spec: volume(ephemeral({ dataSource: { kind: 'PersistentVolumeClaim', name: 'cache-3' } })),
    policy: { claims: ['cache-*'] },
    rejectedBy: [],
  },
  {
    what: 'a volume by its labels',
    spec: volume(ephemeral({ selector: { matchLabels: { disk: 'nvme' } } })),
    policy: { claims: ['cache-*'] },
    rejectedBy: ['claims'],
  },
  {
    what: 'a volume by its labels, for a claim that may be',
    spec: volume(ephemeral({ selector: { matchLabels: { disk: 'nvme' } } })),
    policy: { claims: [`${POD}-v`] },
    rejectedBy: [],
  },
  { what: 'a ConfigMap', spec: volume({ configMap: { name: 'c' } }), policy: {}, rejectedBy: [] },
  {
    what: 'a network volume',
    spec: volume({ nfs: { server: 's', path: '/' } }),
    policy: {},
    rejectedBy: ['volumes'],
  },
  {
    what: 'a network volume that may be',
    spec: volume({ nfs: { server: 's', path: '/' } }),
    policy: { volumes: ['nfs'] },
    rejectedBy: [],
  },
  {
    what: 'a ConfigMap where none may be',
    spec: volume({ configMap: { name: 'c' } }),
    policy: { volumes: ['nfs'] },
    rejectedBy: ['volumes'],
  },
  {
    what: "the node's root",
    spec: volume({ hostPath: { path: '/' } }),
    policy: {},
    rejectedBy: ['hostPaths'],
  },
  {
    what: 'a folder beside the one that may be',
    spec: volume({ hostPath: { path: '/var/cache/cicd' } }),
    policy: { hostPaths: ['/var/cache/ci'] },
    rejectedBy: ['hostPaths'],
  },
  {
    what: 'a folder of the node that may be',
    spec: node,
    policy: { hostPaths: ['/var/cache/ci/'] },
    rejectedBy: [],
  },
  { what: "the node's network", spec: { hostNetwork: true }, policy: {}, rejectedBy: ['host'] },
  {
    what: "the node's processes",
    spec: { hostPID: true },
    policy: { host: ['network', 'ipc'] },
    rejectedBy: ['host'],
  },
  { what: "the node's memory", spec: { hostIPC: true }, policy: {}, rejectedBy: ['host'] },
  {
    what: 'a port of the node',
    spec: { container: { ports: [{ containerPort: 80, hostPort: 80 }] } },
    policy: {},
    rejectedBy: ['host'],
  },
  {
    what: 'a port of its own',
    spec: { container: { ports: [{ containerPort: 80 }] } },
    policy: {},
    rejectedBy: [],
  },
  {
    what: 'all of the node that may be',
    spec: {
      hostNetwork: true,
      hostPID: true,
      hostIPC: true,
      container: { ports: [{ containerPort: 80, hostPort: 80 }] },
    },
    policy: { host: ['network', 'pid', 'ipc'] },
    rejectedBy: [],
  },
  {
    what: 'a privileged container',
    spec: { container: { securityContext: { privileged: true } } },
    policy: {},
    rejectedBy: ['privileged'],
  },
  {
    what: 'a privileged init container',
    spec: { init: { securityContext: { privileged: true } } },
    policy: {},
    rejectedBy: ['privileged'],
  },
  {
    what: 'an unconfined container',
    spec: { container: { securityContext: { seccompProfile: { type: 'Unconfined' } } } },
    policy: {},
    rejectedBy: ['privileged'],
  },
  {
    what: 'an unconfined pod',
    spec: { securityContext: { seccompProfile: { type: 'Unconfined' } } },
    policy: {},
    rejectedBy: ['privileged'],
  },
  {
    what: 'a container without AppArmor',
    spec: { container: { securityContext: { appArmorProfile: { type: 'Unconfined' } } } },
    policy: {},
    rejectedBy: ['privileged'],
  },
  {
    what: 'settings of the node',
    spec: { securityContext: { sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '0' }] } },
    policy: {},
    rejectedBy: ['privileged'],
  },
  {
    what: 'privileged containers that may be',
    spec: { container: { securityContext: { privileged: true } } },
    policy: { privileged: true },
    rejectedBy: [],
  },
  {
    what: 'careful containers',
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      container: {
        securityContext: { capabilities: { drop: ['ALL'] }, allowPrivilegeEscalation: false },
      },
    },
    policy: {},
    rejectedBy: [],
  },
  {
    what: 'a capability',
    spec: { container: { securityContext: { capabilities: { add: ['NET_ADMIN'] } } } },
    policy: { capabilities: ['SYS_TIME'] },
    rejectedBy: ['capabilities'],
  },
  {
    what: 'a capability that may be',
    spec: { container: { securityContext: { capabilities: { add: ['NET_ADMIN'] } } } },
    policy: { capabilities: ['NET_ADMIN'] },
    rejectedBy: [],
  },
  {
    what: 'a limit above the ceiling',
    spec: { container: { resources: { limits: { cpu: '2500m', memory: '1Gi' } } } },
    policy: { resources: { cpu: '2', memory: '1Gi' } },
    rejectedBy: ['resources'],
  },
  {
    what: 'no limit under a ceiling',
    spec: { container: { resources: { limits: { cpu: '1' } } } },
    policy: { resources: { cpu: '2', memory: '1Gi' } },
    rejectedBy: ['resources'],
  },
  {
    what: 'a request of the whole pod above the ceiling',
    spec: {
      container: { resources: { limits: { cpu: '1' } } },
      resources: { requests: { cpu: '64' } },
    },
    policy: { resources: { cpu: '4' } },
    rejectedBy: ['resources'],
  },
  {
    what: 'a device',
    spec: { container: { resources: { limits: { 'nvidia.com/gpu': '1' } } } },
    policy: {},
    rejectedBy: ['resources'],
  },
  {
    what: 'a device that may be',
    spec: { container: { resources: { limits: { 'nvidia.com/gpu': '1' } } } },
    policy: { resources: { 'nvidia.com/gpu': '1' } },
    rejectedBy: [],
  },
  {
    what: 'a runtime class',
    spec: { runtimeClassName: 'runc' },
    policy: {},
    rejectedBy: ['runtimeClasses'],
  },
  {
    what: 'a priority class',
    spec: { priorityClassName: 'system-node-critical' },
    policy: { priorityClasses: ['ci-*'] },
    rejectedBy: ['priorityClasses'],
  },
  {
    what: 'a priority class that may be',
    spec: { priorityClassName: 'system-node-critical' },
    policy: { priorityClasses: ['system-*'] },
    rejectedBy: [],
  },
  {
    what: 'nodes by a label of theirs',
    spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64', 'kubernetes.io/hostname': 'n1' } },
    policy: {},
    rejectedBy: ['nodeSelectors'],
  },
  {
    what: 'nodes by a value that may not be',
    spec: { nodeSelector: { pool: 'infra' } },
    policy: { nodeSelectors: ['pool=ci-*'] },
    rejectedBy: ['nodeSelectors'],
  },
  {
    what: 'nodes that may be',
    spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64', pool: 'ci-large' } },
    policy: { nodeSelectors: ['kubernetes.io/arch', 'pool=ci-*'] },
    rejectedBy: [],
  },
  {
    what: 'a toleration of everything',
    spec: { tolerations: [{ operator: 'Exists' }] },
    policy: { tolerations: ['ci'] },
    rejectedBy: ['tolerations'],
  },
  {
    what: 'a toleration of all values where one may be',
    spec: { tolerations: [{ key: 'ci', operator: 'Exists' }] },
    policy: { tolerations: ['ci=large'] },
    rejectedBy: ['tolerations'],
  },
  {
    what: 'tolerations that may be',
    spec: {
      tolerations: [
        { key: 'ci', value: 'large', effect: 'NoSchedule' },
        { key: 'spot', operator: 'Exists' },
      ],
    },
    policy: { tolerations: ['ci=large', 'spot'] },
    rejectedBy: [],
  },
  {
    what: 'a label',
    spec: {},
    metadata: { labels: { app: 'holdfast-worker' } },
    policy: { labels: ['app=web', 'team'] },
    rejectedBy: ['labels'],
  },
  {
    what: 'labels that may be, and those of Holdfast',
    spec: {},
    metadata: { labels: { team: 'ci', 'holdfast.dev/installation': 'a' } },
    policy: { labels: ['team'] },
    rejectedBy: [],
  },
  {
    what: 'an annotation',
    spec: {},
    metadata: { annotations: { 'iam.amazonaws.com/role': 'admin' } },
    policy: {},
    rejectedBy: ['annotations'],
  },
  {
    what: 'annotations that may be, and those of Holdfast',
    spec: {},
    metadata: {
      annotations: {
        'acme.com/team': 'ci',
        'holdfast.dev/attempt': '1',
        'kubectl.kubernetes.io/default-container': 'runner',
      },
    },
    policy: { annotations: ['acme.com/*'] },
    rejectedBy: [],
  },
  { what: 'a node by name', spec: { nodeName: 'n1' }, policy: {}, rejectedBy: ['fields'] },
  { what: 'a scheduler', spec: { schedulerName: 'mine' }, policy: {}, rejectedBy: ['fields'] },
  {
    what: 'names of hosts',
    spec: { hostAliases: [{ ip: '10.0.0.1', hostnames: ['github.com'] }] },
    policy: {},
    rejectedBy: ['fields'],
  },
  {
    what: 'a probe of another host',
    spec: { container: { livenessProbe: { httpGet: { host: '169.254.169.254', port: 80 } } } },
    policy: {},
    rejectedBy: ['fields'],
  },
  {
    what: 'a volume by its name',
    spec: volume(ephemeral({ volumeName: 'pv-3' })),
    policy: {},
    rejectedBy: ['fields'],
  },
  {
    what: 'fields that may be',
    spec: {
      schedulerName: 'mine',
      hostAliases: [{ ip: '10.0.0.1', hostnames: ['github.com'] }],
      container: { livenessProbe: { httpGet: { host: '169.254.169.254', port: 80 } } },
    },
    policy: { fields: ['schedulerName', 'hostAliases', 'containers.livenessProbe'] },
    rejectedBy: [],
  },
  {
    what: 'a field beside those that may be',
    spec: { schedulerName: 'mine', nodeName: 'n1' },
    policy: { fields: ['schedulerName', 'nodeNames'] },
    rejectedBy: ['fields'],
  },
  {
    what: 'another SELinux type',
    spec: { container: { securityContext: { seLinuxOptions: { type: 'spc_t' } } } },
    policy: {},
    rejectedBy: ['privileged'],
  },
  {
    what: "the node's users where pods have their own",
    spec: {},
    policy: { userNamespaces: true },
    rejectedBy: ['host'],
  },
  {
    what: 'users of its own',
    spec: { hostUsers: false },
    policy: { userNamespaces: true },
    rejectedBy: [],
  },
  {
    what: 'a privileged container of another set',
    spec: { container: { securityContext: { privileged: true } } },
    metadata: { labels: { 'holdfast.dev/set': 'linux' } },
    policy: { rules: [{ sets: ['dind-*'], privileged: true }] },
    rejectedBy: ['privileged'],
  },
  {
    what: 'a privileged container of its set',
    spec: { container: { securityContext: { privileged: true } } },
    metadata: { labels: { 'holdfast.dev/set': 'dind-large' } },
    policy: { rules: [{ sets: ['dind-*'], privileged: true }] },
    rejectedBy: [],
  },
  {
    what: 'a scope, and not the credential',
    spec: { nodeSelector: { pool: 'gpu' } },
    metadata: {
      annotations: {
        'holdfast.dev/scope': 'repository/acme/web',
        'holdfast.dev/credential': 'default',
      },
    },
    policy: {
      rules: [
        { scopes: ['acme/*'], credentials: ['big'], nodeSelectors: ['pool'] },
        { scopes: ['acme'], nodeSelectors: ['pool'] },
      ],
    },
    rejectedBy: ['nodeSelectors'],
  },
  {
    what: 'a scope and the credential',
    spec: { nodeSelector: { pool: 'gpu' } },
    metadata: {
      annotations: {
        'holdfast.dev/scope': 'repository/acme/web',
        'holdfast.dev/credential': 'big',
      },
    },
    policy: {
      rules: [{ scopes: ['acme/*'], credentials: ['big'], nodeSelectors: ['pool'] }],
    },
    rejectedBy: [],
  },
  {
    what: 'limits at the ceiling',
    spec: { container: { resources: { limits: { cpu: '2000m', memory: '1024Mi' } } } },
    policy: { resources: { cpu: '2', memory: '1Gi' } },
    rejectedBy: [],
  },
];
