/**
 * The rules of a pod policy, each in two forms. The check in this process names the field and the
 * fix before anything is created. The CEL expression lets the API server enforce the rule on a
 * compromised worker. test/cluster/kubernetes.policy applies both to the same pods.
 */
import type {
  V1Container,
  V1PersistentVolumeClaimSpec,
  V1PodSpec,
  V1Volume,
} from '@kubernetes/client-node';
import {
  SHARED_DIR_CONTAINER,
  STORE_VOLUME,
  UPLOADER_CONTAINER,
} from '../../../../core/domain/podTemplate.ts';
import { matchesAny, patternSource } from './patterns.ts';
import type { ImplicitlyAllowed, PodPolicy } from './podPolicy.ts';
import { parseQuantity } from './quantity.ts';

/** The pod to check, without fields that are `null`, and the objects that belong to it. */
export interface PolicyInput {
  readonly spec: V1PodSpec;
  readonly namespace: string;
  /** Name of the pod. The Secret of its registration has the same name. */
  readonly name: string;
  /** Names of claims that are created for this pod alone. */
  readonly claims: readonly string[];
  /**
   * Claims that are created if they do not exist, including those for this pod alone.
   * @default none
   */
  readonly made?: readonly CreatedClaim[];
  /** Whether the pod runs code of an untrusted change. */
  readonly untrusted?: true;
}

type Claimed = Pick<V1PersistentVolumeClaimSpec, 'dataSource' | 'dataSourceRef' | 'selector'>;

/** A claim to create, with the sources of its data. */
export interface CreatedClaim extends Claimed {
  /** Path of the claim in the input. */
  readonly path: string;
  readonly name: string;
}

interface Rule {
  /** Field of the policy that permits exceptions from the rule. */
  readonly field: keyof PodPolicy;
  /**
   * Returns each violation with its path in the pod. The list is empty if the pod satisfies the
   * rule.
   */
  readonly violations: (pod: PolicyInput, policy: PodPolicy, own: ImplicitlyAllowed) => string[];
  /** Returns the same rule as a CEL expression, which is true if there is no violation. */
  readonly cel: (policy: PodPolicy, own: ImplicitlyAllowed) => string;
}

type Refusal = string | undefined | false;

const said = (refusals: readonly Refusal[]): string[] =>
  refusals.filter((each) => typeof each === 'string');

function ofContainers(
  { spec }: PolicyInput,
  judge: (container: V1Container, path: string) => readonly Refusal[],
): string[] {
  const lists = { initContainers: spec.initContainers, containers: spec.containers };
  return Object.entries(lists).flatMap(([list, containers = []]) =>
    containers.flatMap((container, index) => said(judge(container, `${list}[${index}]`))),
  );
}

function ofVolumes(
  { spec }: PolicyInput,
  judge: (volume: V1Volume, path: string) => readonly Refusal[],
): string[] {
  return (spec.volumes ?? []).flatMap((volume, index) => said(judge(volume, `volumes[${index}]`)));
}

/** Returns a CEL condition on all items of a list that may be absent. */
const all = (list: string, item: string, condition: string): string =>
  `(!has(${list}) || ${list}.all(${item}, ${condition}))`;
const everyContainer = (condition: string): string =>
  ['initContainers', 'containers']
    .map((list) => all(`object.spec.${list}`, 'c', condition))
    .join(' && ');
const everyVolume = (condition: string): string => all('object.spec.volumes', 'v', condition);
/** Returns a CEL condition on a name. CEL strings are escaped like JSON strings. */
const isCovered = (value: string, patterns: readonly string[]): string =>
  patterns.length === 0
    ? 'false'
    : `${value}.matches(${JSON.stringify(`(?s)${patternSource(patterns)}`)})`;
const list = (values: readonly string[]): string => JSON.stringify(values);

/** Containers that Holdfast adds to the pod of a step. No template may use these names. */
const BESIDE_A_STEP: readonly string[] = [UPLOADER_CONTAINER, SHARED_DIR_CONTAINER];

/** Kinds of volumes that Holdfast itself uses, and `hostPath`, which has a rule of its own. */
const OWN_KINDS = ['downwardAPI', 'emptyDir', 'hostPath', 'persistentVolumeClaim'];

/** Pod fields by their names in the `host` list of the policy. */
const HOST = { network: 'hostNetwork', pid: 'hostPID', ipc: 'hostIPC' } as const;

/** The rules of a pod policy, one per field. */
export const POD_RULES: readonly Rule[] = [
  {
    field: 'images',
    violations: (pod, { images }, own) =>
      ofContainers(pod, ({ image = '' }, path) => [
        !matchesAny([...images, ...own.images], image) && `${path}.image: "${image}"`,
      ]),
    cel: ({ images }, own) => everyContainer(isCovered('c.image', [...images, ...own.images])),
  },
  {
    field: 'namespaces',
    violations: ({ namespace }, { namespaces }, own) =>
      said([!matchesAny([own.namespace, ...namespaces], namespace) && `namespace: "${namespace}"`]),
    cel: ({ namespaces }, own) => isCovered('request.namespace', [own.namespace, ...namespaces]),
  },
  {
    field: 'serviceAccounts',
    violations: (pod, { serviceAccounts }) => {
      const {
        serviceAccountName: name = pod.spec.serviceAccount ?? 'default',
        automountServiceAccountToken: token,
      } = pod.spec;
      if (matchesAny(serviceAccounts, name)) return [];
      return [
        ...said([
          name !== 'default' && `serviceAccountName: "${name}"`,
          token !== false && 'automountServiceAccountToken: its token',
        ]),
        ...ofVolumes(pod, ({ projected }, path) => [
          projected?.sources?.some(
            ({ serviceAccountToken }) => serviceAccountToken !== undefined,
          ) === true && `${path}.projected: a token of the service account "${name}"`,
        ]),
      ];
    },
    // The API server sets the name before it evaluates the policy.
    cel: ({ serviceAccounts }) => {
      const projected = `(!has(v.projected) || !has(v.projected.sources) || v.projected.sources.all(s, !has(s.serviceAccountToken)))`;
      const none = `(object.spec.serviceAccountName == "default" && has(object.spec.automountServiceAccountToken) && !object.spec.automountServiceAccountToken && ${everyVolume(projected)})`;
      return `has(object.spec.serviceAccountName) && (${isCovered('object.spec.serviceAccountName', serviceAccounts)} || ${none})`;
    },
  },
  {
    field: 'secrets',
    violations: (pod, { secrets }, { storeSecret }) => {
      const allowed = (name: string | undefined): boolean =>
        name === undefined || matchesAny(secrets, name);
      return [
        ...ofContainers(pod, ({ name: container, env = [], envFrom = [], volumeMounts }, path) => [
          ...(BESIDE_A_STEP.includes(container) || storeSecret === undefined
            ? []
            : (volumeMounts ?? [])
          ).map(
            ({ name }, i) =>
              name === STORE_VOLUME && `${path}.volumeMounts[${i}]: the Secret "${storeSecret}"`,
          ),
          ...env.map(
            ({ valueFrom }, i) =>
              valueFrom?.secretKeyRef?.name !== pod.name &&
              !allowed(valueFrom?.secretKeyRef?.name) &&
              `${path}.env[${i}]: the Secret "${valueFrom?.secretKeyRef?.name}"`,
          ),
          ...envFrom.map(
            ({ secretRef }, i) =>
              !allowed(secretRef?.name) && `${path}.envFrom[${i}]: the Secret "${secretRef?.name}"`,
          ),
        ]),
        ...ofVolumes(pod, ({ name, secret, projected }, path) => [
          secret !== undefined &&
            !(name === STORE_VOLUME && secret.secretName === storeSecret) &&
            !allowed(secret.secretName ?? '') &&
            `${path}.secret: the Secret "${secret.secretName}"`,
          ...(projected?.sources ?? []).map(
            ({ secret: source }) =>
              !allowed(source?.name) && `${path}.projected: the Secret "${source?.name}"`,
          ),
        ]),
        ...said(
          (pod.spec.imagePullSecrets ?? []).map(
            ({ name = '' }, i) => !allowed(name) && `imagePullSecrets[${i}]: the Secret "${name}"`,
          ),
        ),
      ];
    },
    cel: ({ secrets }, { storeSecret }) => {
      const has = (name: string): string => isCovered(name, secrets);
      const ofStore =
        storeSecret === undefined
          ? ''
          : `(v.name == "${STORE_VOLUME}" && v.secret.secretName == "${storeSecret}") || `;
      const mounts =
        storeSecret === undefined
          ? 'true'
          : all(
              'c.volumeMounts',
              'm',
              `m.name != "${STORE_VOLUME}" || c.name in ${list(BESIDE_A_STEP)}`,
            );
      const env = all(
        'c.env',
        'e',
        `!has(e.valueFrom) || !has(e.valueFrom.secretKeyRef) || e.valueFrom.secretKeyRef.name == object.metadata.name || ${has('e.valueFrom.secretKeyRef.name')}`,
      );
      const envFrom = all('c.envFrom', 'e', `!has(e.secretRef) || ${has('e.secretRef.name')}`);
      const projected = `!has(v.projected) || !has(v.projected.sources) || v.projected.sources.all(s, !has(s.secret) || ${has('s.secret.name')})`;
      const volumes = everyVolume(
        `(!has(v.secret) || (has(v.secret.secretName) && (${ofStore}${has('v.secret.secretName')}))) && (${projected})`,
      );
      return `${everyContainer(`${env} && ${envFrom} && ${mounts}`)} && ${volumes} && ${all('object.spec.imagePullSecrets', 's', has('s.name'))}`;
    },
  },
  {
    field: 'claims',
    violations: (pod, { claims }, own) => [
      ...ofVolumes(pod, ({ name, persistentVolumeClaim: claim }, path) => [
        claim !== undefined &&
          !(name === STORE_VOLUME && claim.claimName === own.store) &&
          !pod.claims.includes(claim.claimName) &&
          !matchesAny(claims, claim.claimName) &&
          `${path}.persistentVolumeClaim: the claim "${claim.claimName}"`,
      ]),
      ...ofVolumes(pod, ({ name, ephemeral }, path) =>
        claimViolations(
          ephemeral?.volumeClaimTemplate?.spec,
          { path: `${path}.ephemeral.volumeClaimTemplate.spec`, name: `${pod.name}-${name}` },
          claims,
        ),
      ),
      ...(pod.made ?? []).flatMap((claim) => said(claimViolations(claim, claim, claims))),
    ],
    // The own claims of a runner workflow are recognized by their names only
    // (activities/compute/naming.ts).
    cel: ({ claims }, { store }) =>
      `${everyVolume(`!has(v.ephemeral) || !has(v.ephemeral.volumeClaimTemplate) || (${hasNoDataSource('v.ephemeral.volumeClaimTemplate.spec', '(object.metadata.name + "-" + v.name)', claims)})`)} && ${everyVolume(`!has(v.persistentVolumeClaim) || ${store === undefined ? '' : `(v.name == "${STORE_VOLUME}" && v.persistentVolumeClaim.claimName == "${store}") || `}v.persistentVolumeClaim.claimName.matches("^.+-[0-9a-f]{10}-.+$") || ${isCovered('v.persistentVolumeClaim.claimName', claims)}`)}`,
  },
  {
    field: 'volumes',
    violations: (pod, { volumes }) =>
      ofVolumes(pod, (volume, path) => [
        kindsOf(volume).some((kind) => !OWN_KINDS.includes(kind) && !volumes.includes(kind)) &&
          `${path}: a volume of the kind ${kindsOf(volume).join()}`,
      ]),
    cel: ({ volumes }) =>
      everyVolume([...OWN_KINDS, ...volumes].map((kind) => `has(v.${kind})`).join(' || ')),
  },
  {
    field: 'hostPaths',
    violations: (pod, { hostPaths }) =>
      ofVolumes(pod, ({ hostPath }, path) => [
        hostPath !== undefined &&
          !isUnder(hostPaths, hostPath.path) &&
          `${path}.hostPath: the node's "${hostPath.path}"`,
      ]),
    cel: ({ hostPaths }) =>
      everyVolume(
        `!has(v.hostPath) || ${list(hostPaths.map(trimmed))}.exists(p, v.hostPath.path == p || v.hostPath.path.startsWith(p + "/"))`,
      ),
  },
  {
    field: 'host',
    violations: (pod, { host }) => [
      ...said(
        Object.entries(HOST).map(
          ([name, field]) =>
            pod.spec[field] === true &&
            !host.includes(name as keyof typeof HOST) &&
            `${field}: the node's ${name}`,
        ),
      ),
      ...(host.includes('network')
        ? []
        : ofContainers(pod, ({ ports = [] }, path) =>
            ports.map(
              ({ hostPort }, i) =>
                hostPort !== undefined &&
                hostPort !== 0 &&
                `${path}.ports[${i}].hostPort: a port of the node`,
            ),
          )),
    ],
    cel: ({ host }) =>
      [
        ...Object.entries(HOST).map(([name, field]) =>
          host.includes(name as keyof typeof HOST)
            ? 'true'
            : `(!has(object.spec.${field}) || !object.spec.${field})`,
        ),
        host.includes('network')
          ? 'true'
          : everyContainer(all('c.ports', 'p', '!has(p.hostPort) || p.hostPort == 0')),
      ].join(' && '),
  },
  {
    field: 'privileged',
    violations: (pod, { privileged }) => {
      if (privileged) return [];
      const { securityContext: ofPod = {} } = pod.spec;
      return [
        ...said([
          (ofPod.sysctls?.length ?? 0) > 0 && 'securityContext.sysctls: settings of the node',
          ...profiles(ofPod, 'securityContext'),
        ]),
        ...ofContainers(pod, ({ securityContext: own = {} }, path) => [
          own.privileged === true && `${path}.securityContext.privileged: a privileged container`,
          own.procMount !== undefined &&
            !matchesAny(['Default'], own.procMount) &&
            `${path}.securityContext.procMount: "${own.procMount}"`,
          ...profiles(own, `${path}.securityContext`),
        ]),
      ];
    },
    cel: ({ privileged }) => {
      if (privileged) return 'true';
      const confined = (context: string): string =>
        `(!has(${context}.seccompProfile) || ${context}.seccompProfile.type != "Unconfined") && (!has(${context}.appArmorProfile) || ${context}.appArmorProfile.type != "Unconfined") && (!has(${context}.windowsOptions) || !has(${context}.windowsOptions.hostProcess) || !${context}.windowsOptions.hostProcess)`;
      const own = 'c.securityContext';
      const ofPod = 'object.spec.securityContext';
      const container = `!has(${own}) || ((!has(${own}.privileged) || !${own}.privileged) && (!has(${own}.procMount) || ${own}.procMount == "Default") && ${confined(own)})`;
      return `${everyContainer(container)} && (!has(${ofPod}) || ((!has(${ofPod}.sysctls) || size(${ofPod}.sysctls) == 0) && ${confined(ofPod)}))`;
    },
  },
  {
    field: 'capabilities',
    violations: (pod, { capabilities }) =>
      ofContainers(pod, ({ securityContext }, path) =>
        (securityContext?.capabilities?.add ?? []).map(
          (name) =>
            !matchesAny(capabilities, name) && `${path}.securityContext.capabilities: ${name}`,
        ),
      ),
    cel: ({ capabilities }) =>
      everyContainer(
        `!has(c.securityContext) || !has(c.securityContext.capabilities) || ${all('c.securityContext.capabilities.add', 'a', isCovered('a', capabilities))}`,
      ),
  },
  {
    field: 'runtimeClasses',
    violations: ({ spec }, { runtimeClasses }) =>
      said([
        spec.runtimeClassName !== undefined &&
          !matchesAny(runtimeClasses, spec.runtimeClassName) &&
          `runtimeClassName: "${spec.runtimeClassName}"`,
      ]),
    cel: ({ runtimeClasses }) =>
      `!has(object.spec.runtimeClassName) || ${isCovered('object.spec.runtimeClassName', runtimeClasses)}`,
  },
  {
    field: 'resources',
    violations: (pod, { resources }) =>
      ofContainers(pod, ({ resources: own }, path) =>
        ceilings(resources).map(([name, max]) => {
          const limit = own?.limits?.[name];
          if (limit === undefined)
            return `${path}.resources.limits.${name}: none, where at most ${max} is allowed`;
          const [asked, ceiling] = [parseQuantity(limit), parseQuantity(max)];
          // A value that cannot be compared is not within the limit.
          return (
            !(asked !== undefined && ceiling !== undefined && asked <= ceiling) &&
            `${path}.resources.limits.${name}: ${asked === undefined ? 'no quantity' : limit}, where at most ${max} is allowed`
          );
        }),
      ),
    cel: ({ resources }) => {
      const within = ceilings(resources).map(
        ([name, max]) =>
          `"${name}" in c.resources.limits && !quantity(c.resources.limits["${name}"]).isGreaterThan(quantity("${max}"))`,
      );
      return within.length === 0
        ? 'true'
        : everyContainer(`has(c.resources) && has(c.resources.limits) && ${within.join(' && ')}`);
    },
  },
];

/**
 * Returns the violations of a claim. A data source makes the claim a copy of other data, and a
 * volume that is selected by its labels may contain the data of others.
 */
function claimViolations(
  { dataSource, dataSourceRef, selector }: Claimed = {},
  { path, name }: Pick<CreatedClaim, 'path' | 'name'>,
  claims: readonly string[],
): Refusal[] {
  const isAllowed = ({ name: of, namespace }: { name: string; namespace?: string }): boolean =>
    matchesAny(claims, namespace === undefined ? of : `${namespace}/${of}`);
  return [
    dataSource !== undefined &&
      !isAllowed(dataSource) &&
      `${path}.dataSource: the ${dataSource.kind} "${dataSource.name}"`,
    dataSourceRef !== undefined &&
      !isAllowed(dataSourceRef) &&
      `${path}.dataSourceRef: the ${dataSourceRef.kind} "${dataSourceRef.name}"`,
    selector !== undefined &&
      !matchesAny(claims, name) &&
      `${path}.selector: volumes by their labels, for the claim "${name}"`,
  ];
}

/**
 * Returns the same rule as a CEL expression.
 * @param spec - expression of the claim's spec
 * @param name - expression of the claim's name
 */
export function hasNoDataSource(spec: string, name: string, claims: readonly string[]): string {
  const ref = `${spec}.dataSourceRef`;
  return [
    `(!has(${spec}.dataSource) || ${isCovered(`${spec}.dataSource.name`, claims)})`,
    // `namespace` is a reserved word of CEL.
    `(!has(${ref}) || ${isCovered(`(has(${ref}.__namespace__) ? ${ref}.__namespace__ + "/" + ${ref}.name : ${ref}.name)`, claims)})`,
    `(!has(${spec}.selector) || ${isCovered(name, claims)})`,
  ].join(' && ');
}

function ceilings(resources: PodPolicy['resources']): [string, string][] {
  return Object.entries(resources).flatMap(([name, max]) =>
    max === undefined ? [] : [[name, max]],
  );
}

function profiles(
  {
    seccompProfile,
    appArmorProfile,
    windowsOptions,
  }: Pick<
    NonNullable<V1Container['securityContext']>,
    'seccompProfile' | 'appArmorProfile' | 'windowsOptions'
  >,
  path: string,
): Refusal[] {
  return [
    seccompProfile?.type === 'Unconfined' && `${path}.seccompProfile: Unconfined`,
    appArmorProfile?.type === 'Unconfined' && `${path}.appArmorProfile: Unconfined`,
    windowsOptions?.hostProcess === true &&
      `${path}.windowsOptions.hostProcess: a process of the node`,
  ];
}

/**
 * Returns the kinds of a volume. The API server accepts exactly one. A volume without any is an
 * emptyDir.
 */
const kindsOf = (volume: V1Volume): string[] => {
  const kinds = Object.keys(volume).filter((field) => field !== 'name');
  return kinds.length === 0 ? ['emptyDir'] : kinds;
};
const trimmed = (path: string): string => path.replace(/\/+$/, '');
/**
 * Returns whether the path is in one of the directories.
 * @throws TypeError if the path is not a string, like {@link matchesAny}
 */
function isUnder(folders: readonly string[], path: string): boolean {
  if (typeof path !== 'string') throw new TypeError('a path that is no text');
  return folders.map(trimmed).some((folder) => path === folder || path.startsWith(`${folder}/`));
}
