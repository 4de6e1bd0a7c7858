/**
 * The rules of a pod policy, each in two forms. The check in this process names the field and the
 * fix before anything is created. The CEL expression lets the API server enforce the rule on a
 * compromised worker. It reads the policy from `variables.policy` (celPolicy.ts), so it is the same
 * for every policy. test/cluster/kubernetes.policy applies both to the same pods.
 */
import type {
  V1Container,
  V1PersistentVolumeClaimSpec,
  V1PodSpec,
  V1Volume,
} from '@kubernetes/client-node';
import type { PodTemplate } from '../../../../core/domain/pod.ts';
import {
  isReservedMetadata,
  MANAGED_BY_LABEL,
  REGISTER_CONTAINER,
  RESERVED_METADATA_PREFIX,
  RESERVED_VOLUME_PREFIX,
  RUNNER_CONTAINER,
  SHARED_DIR_CONTAINER,
  STORE_VOLUME,
  UPLOADER_CONTAINER,
} from '../../../../core/domain/podTemplate.ts';
import { TOKEN_VARIABLES } from '../../../../core/domain/runnerKinds/runnerKinds.ts';
import {
  ALLOWED_METADATA,
  ALLOWED_SPEC,
  allowedFieldsCel,
  PRIVILEGED_CONTEXT_FIELDS,
  unnamedFields,
  type PodField,
} from './allowedFields.ts';
import { matchesAny } from './patterns.ts';
import type { ImplicitlyAllowed, PodPolicy } from './podPolicy.ts';
import { parseQuantity } from './quantity.ts';

/** The pod to check, without fields that are `null`, and the objects that belong to it. */
export interface PolicyInput {
  readonly spec: V1PodSpec;
  /** Labels of the pod, with Holdfast's own. @default none */
  readonly labels?: Readonly<Record<string, string>>;
  /** Annotations of the pod, with Holdfast's own. @default none */
  readonly annotations?: Readonly<Record<string, string>>;
  /**
   * Template of the request, merged under the fields that Holdfast sets.
   * @default none
   */
  readonly template?: PodTemplate;
  /** Fields of the worker's template for which the request has other values. @default none */
  readonly overridden?: readonly PodField[];
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
  /**
   * Field of the policy that permits exceptions from the rule. `namespaces` are those of the
   * worker.
   */
  readonly field: keyof PodPolicy | 'namespaces';
  /**
   * Returns each violation with its path in the pod. The list is empty if the pod satisfies the
   * rule.
   */
  readonly violations: (pod: PolicyInput, policy: PodPolicy, own: ImplicitlyAllowed) => string[];
  /**
   * The same rule as a CEL expression, which is true if there is no violation. Absent if the API
   * server cannot know what it is about.
   */
  readonly cel?: string;
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
const everyContainer = (condition: string): string => `variables.containers.all(c, ${condition})`;
const everyVolume = (condition: string): string => all('object.spec.volumes', 'v', condition);
/** Returns a CEL condition that one of the patterns in a field of the policy covers the value. */
const isCovered = (value: string, field: keyof PodPolicy): string =>
  `variables.policy.${field}.exists(p, ${value}.matches(p))`;
const list = (values: readonly string[]): string => JSON.stringify(values);

/** Containers that Holdfast adds to the pod of a step. No template may use these names. */
const BESIDE_A_STEP: readonly string[] = [UPLOADER_CONTAINER, SHARED_DIR_CONTAINER];

/** Name of a runner's own Secret, with its registration (activities/compute/naming.ts). */
const RUNNER_SECRET = '^.+-[0-9a-f]{10}$';

/** Returns the patterns for the Secret. A `*` does not cover the registrations of runners. */
const secretsFor = (name: string, secrets: readonly string[]): readonly string[] =>
  new RegExp(RUNNER_SECRET).test(name) ? secrets.filter((each) => !each.includes('*')) : secrets;

/** Returns the same as a CEL expression. */
const isSecretCovered = (name: string): string =>
  `(${name} != object.metadata.name && variables.policy.secrets.exists(p, ${name}.matches(p) && (!${name}.matches("${RUNNER_SECRET}") || !p.contains("*"))))`;

/**
 * Returns whether the variable is part of the pod's own registration, in a container that needs it.
 * Only the container that registers gets a token.
 */
function isOwnRegistration(
  container: string,
  pod: string,
  ref: { name?: string; key: string } | undefined,
): boolean {
  if (ref?.name !== pod) return false;
  return (
    container === REGISTER_CONTAINER ||
    (container === RUNNER_CONTAINER && !TOKEN_VARIABLES.includes(ref.key))
  );
}

/** The same as a CEL expression. */
const OWN_REGISTRATION_CEL = [
  '(e.valueFrom.secretKeyRef.name == object.metadata.name',
  `(c.name == "${REGISTER_CONTAINER}" || (c.name == "${RUNNER_CONTAINER}"`,
  `!(e.valueFrom.secretKeyRef.key in ${list(TOKEN_VARIABLES)}))))`,
].join(' && ');

/**
 * Kinds of volumes that every policy allows: those of Holdfast itself, except Secrets, which have a
 * rule by name; and `hostPath`, which has a rule of its own.
 */
const OWN_KINDS = ['downwardAPI', 'emptyDir', 'hostPath', 'persistentVolumeClaim'];

/** Pod fields by their names in the `host` list of the policy. */
const HOST = { network: 'hostNetwork', pid: 'hostPID', ipc: 'hostIPC' } as const;

/** Annotations that Holdfast sets and that do not have its prefix. */
const OWN_ANNOTATIONS = ['kubectl.kubernetes.io/default-container'];
/** Annotation of the API server on a pod whose resources a LimitRange has completed. */
const LIMIT_RANGER = 'kubernetes.io/limit-ranger';
/** Taints that the API server lets every pod tolerate for a while. */
const OF_API_SERVER = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
/** Resources whose limit a policy with a maximum requires. */
export const BASIC_RESOURCES: readonly string[] = ['cpu', 'memory', 'ephemeral-storage'];

/** The rules of a pod policy, one per field. */
export const POD_RULES: readonly Rule[] = [
  {
    field: 'images',
    violations: (pod, { images }, own) =>
      ofContainers(pod, ({ image = '' }, path) => [
        !matchesAny([...images, ...own.images], image) && `${path}.image: "${image}"`,
      ]),
    cel: everyContainer(isCovered('c.image', 'images')),
  },
  {
    field: 'namespaces',
    violations: ({ namespace }, _policy, { namespaces }) =>
      said([!namespaces.includes(namespace) && `namespace: "${namespace}"`]),
    cel: 'request.namespace in variables.policy.namespaces',
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
    cel: [
      'has(object.spec.serviceAccountName)',
      `(${isCovered('object.spec.serviceAccountName', 'serviceAccounts')} || (${[
        'object.spec.serviceAccountName == "default"',
        'has(object.spec.automountServiceAccountToken)',
        '!object.spec.automountServiceAccountToken',
        everyVolume(
          '!has(v.projected) || !has(v.projected.sources) || v.projected.sources.all(s, !has(s.serviceAccountToken))',
        ),
      ].join(' && ')}))`,
    ].join(' && '),
  },
  {
    field: 'secrets',
    violations: (pod, { secrets }, { storeSecret }) => {
      const allowed = (name: string | undefined): boolean =>
        name === undefined || (name !== pod.name && matchesAny(secretsFor(name, secrets), name));
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
              !isOwnRegistration(container, pod.name, valueFrom?.secretKeyRef) &&
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
    cel: [
      everyContainer(
        [
          all(
            'c.env',
            'e',
            `!has(e.valueFrom) || !has(e.valueFrom.secretKeyRef) || ${OWN_REGISTRATION_CEL} || ${isSecretCovered('e.valueFrom.secretKeyRef.name')}`,
          ),
          all('c.envFrom', 'e', `!has(e.secretRef) || ${isSecretCovered('e.secretRef.name')}`),
          `(variables.policy.storeSecret == "" || ${all(
            'c.volumeMounts',
            'm',
            `m.name != "${STORE_VOLUME}" || c.name in ${list(BESIDE_A_STEP)}`,
          )})`,
        ].join(' && '),
      ),
      everyVolume(
        `(!has(v.secret) || (has(v.secret.secretName) && ((v.name == "${STORE_VOLUME}" && v.secret.secretName == variables.policy.storeSecret) || ${isSecretCovered('v.secret.secretName')}))) && (!has(v.projected) || !has(v.projected.sources) || v.projected.sources.all(s, !has(s.secret) || ${isSecretCovered('s.secret.name')}))`,
      ),
      all('object.spec.imagePullSecrets', 's', isSecretCovered('s.name')),
    ].join(' && '),
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
    cel: [
      everyVolume(
        `!has(v.ephemeral) || !has(v.ephemeral.volumeClaimTemplate) || (${hasNoDataSource('v.ephemeral.volumeClaimTemplate.spec', '(object.metadata.name + "-" + v.name)')})`,
      ),
      everyVolume(
        `!has(v.persistentVolumeClaim) || (v.name == "${STORE_VOLUME}" && v.persistentVolumeClaim.claimName == variables.policy.store) || v.persistentVolumeClaim.claimName.matches("^.+-[0-9a-f]{10}-.+$") || ${isCovered('v.persistentVolumeClaim.claimName', 'claims')}`,
      ),
    ].join(' && '),
  },
  {
    field: 'volumes',
    violations: (pod, { volumes }) =>
      ofVolumes(pod, (volume, path) => [
        kindsOf(volume).some(
          (kind) =>
            !OWN_KINDS.includes(kind) &&
            !(kind === 'secret' && volume.name.startsWith(RESERVED_VOLUME_PREFIX)) &&
            !volumes.includes(kind),
        ) && `${path}: a volume of the kind ${kindsOf(volume).join()}`,
      ]),
    cel: everyVolume(
      `dyn(v).all(k, k == "name" || k in ${list(OWN_KINDS)} || (k == "secret" && v.name.startsWith("${RESERVED_VOLUME_PREFIX}")) || k in variables.policy.volumes)`,
    ),
  },
  {
    field: 'hostPaths',
    violations: (pod, { hostPaths }) =>
      ofVolumes(pod, ({ hostPath }, path) => [
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
      ...said(
        Object.entries(HOST).map(
          ([name, field]) =>
            pod.spec[field] === true &&
            !host.includes(name as keyof typeof HOST) &&
            `${field}: the node's ${name}`,
        ),
      ),
      ...said([
        userNamespaces &&
          pod.spec.hostUsers !== false &&
          !host.includes('users') &&
          "hostUsers: the node's users",
      ]),
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
      ofContainers(pod, ({ securityContext }, path) =>
        (securityContext?.capabilities?.add ?? []).map(
          (name) =>
            !matchesAny(capabilities, name) && `${path}.securityContext.capabilities: ${name}`,
        ),
      ),
    cel: everyContainer(
      `!has(c.securityContext) || !has(c.securityContext.capabilities) || ${all('c.securityContext.capabilities.add', 'a', isCovered('a', 'capabilities'))}`,
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
    cel: `!has(object.spec.runtimeClassName) || ${isCovered('object.spec.runtimeClassName', 'runtimeClasses')}`,
  },
  {
    field: 'priorityClasses',
    violations: ({ spec }, { priorityClasses }) =>
      said([
        spec.priorityClassName !== undefined &&
          !matchesAny(priorityClasses, spec.priorityClassName) &&
          `priorityClassName: "${spec.priorityClassName}"`,
      ]),
    cel: `!has(object.spec.priorityClassName) || object.spec.priorityClassName == "" || ${isCovered('object.spec.priorityClassName', 'priorityClasses')}`,
  },
  {
    field: 'nodeSelectors',
    violations: ({ spec }, { nodeSelectors }) =>
      pairViolations('nodeSelector', spec.nodeSelector, nodeSelectors),
    cel: `!has(object.spec.nodeSelector) || object.spec.nodeSelector.all(k, ${isCovered('(k + "=" + object.spec.nodeSelector[k])', 'nodeSelectors')})`,
  },
  {
    field: 'tolerations',
    violations: ({ spec }, { tolerations }) =>
      said(
        (spec.tolerations ?? []).map(({ key = '', operator, value = '' }, index) => {
          const taint = `${key}=${operator === 'Exists' ? '*' : value}`;
          return (
            !matchesAny(tolerations.map(toPairPattern), taint) &&
            `tolerations[${index}]: of the taint "${taint}"`
          );
        }),
      ),
    cel: all(
      'object.spec.tolerations',
      't',
      `(has(t.key) && t.key in ${list(OF_API_SERVER)}) || ${isCovered('((has(t.key) ? t.key : "") + "=" + (has(t.operator) && t.operator == "Exists" ? "*" : has(t.value) ? t.value : ""))', 'tolerations')}`,
    ),
  },
  {
    field: 'labels',
    violations: (pod, { labels }) =>
      pairViolations('metadata.labels', withoutOwn(pod.labels, []), labels),
    cel: metadataCel('labels', []),
  },
  {
    field: 'annotations',
    violations: (pod, { annotations }) =>
      pairViolations(
        'metadata.annotations',
        withoutOwn(pod.annotations, OWN_ANNOTATIONS),
        annotations,
      ),
    cel: metadataCel('annotations', [...OWN_ANNOTATIONS, LIMIT_RANGER]),
  },
  {
    field: 'fields',
    violations: ({ spec, template }, { fields }) =>
      [
        ...unnamedFields(spec, ALLOWED_SPEC).filter(({ path }) => !isDefaultScheduler(spec, path)),
        ...unnamedFields(template?.metadata ?? {}, ALLOWED_METADATA, 'metadata', 'metadata'),
      ]
        .filter(({ field }) => !matchesAny(withContent(fields), field))
        .map(({ path, field }: PodField) => `${path}: the field "${field}"`),
    cel: allowedFieldsCel(),
  },
  {
    field: 'resources',
    violations: (pod, { resources }) => [
      ...ofContainers(pod, ({ resources: own }, path) => [
        ...BASIC_RESOURCES.map(
          (name) =>
            resources[name] !== undefined &&
            own?.limits?.[name] === undefined &&
            `${path}.resources.limits.${name}: none, where at most ${resources[name]} is allowed`,
        ),
        ...excessiveResources(own, resources, `${path}.resources`),
      ]),
      ...said(excessiveResources(pod.spec.resources, resources, 'resources')),
    ],
    cel: [
      everyContainer(
        [
          `${list(BASIC_RESOURCES)}.all(r, !(r in variables.policy.resources) || (has(c.resources) && has(dyn(c.resources).limits) && r in dyn(c.resources).limits))`,
          `(!has(c.resources) || (${isWithin('c.resources')}))`,
        ].join(' && '),
      ),
      `(!has(object.spec.resources) || (${isWithin('object.spec.resources')}))`,
    ].join(' && '),
  },
  {
    field: 'template',
    violations: ({ template }, { template: mode }) =>
      said(
        mode === 'fixed'
          ? Object.entries(template ?? {}).map(
              ([part, content]: [string, object]) =>
                Object.keys(content ?? {}).length > 0 && `${part}: a template of the runner's own`,
            )
          : [],
      ),
  },
  {
    field: 'overrides',
    violations: ({ overridden = [] }, { overrides }) =>
      overridden
        .filter(({ field }) => !matchesAny(withContent(overrides), field))
        .map(({ path, field }) => `${path}: another "${field}" than the worker's template has`),
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
export function hasNoDataSource(spec: string, name: string): string {
  const ref = `${spec}.dataSourceRef`;
  return [
    `(!has(${spec}.dataSource) || ${isCovered(`${spec}.dataSource.name`, 'claims')})`,
    // `namespace` is a reserved word of CEL.
    `(!has(${ref}) || ${isCovered(`(has(${ref}.__namespace__) ? ${ref}.__namespace__ + "/" + ${ref}.name : ${ref}.name)`, 'claims')})`,
    `(!has(${spec}.selector) || ${isCovered(name, 'claims')})`,
  ].join(' && ');
}

/** Returns the requests and limits of a container or pod above the maximum, or without one. */
function excessiveResources(
  own: { limits?: Record<string, unknown>; requests?: Record<string, unknown> } | undefined,
  resources: PodPolicy['resources'],
  path: string,
): Refusal[] {
  return (['limits', 'requests'] as const).flatMap((list) =>
    Object.entries(own?.[list] ?? {}).map(([name, quantity]) => {
      const max = resources[name];
      if (max === undefined)
        return !BASIC_RESOURCES.includes(name) && `${path}.${list}.${name}: the resource "${name}"`;
      const [asked, ceiling] = [parseQuantity(quantity), parseQuantity(max)];
      // A value that cannot be compared is not within the limit.
      return (
        !(asked !== undefined && ceiling !== undefined && asked <= ceiling) &&
        `${path}.${list}.${name}: ${asked === undefined ? 'no quantity' : String(quantity)}, where at most ${max} is allowed`
      );
    }),
  );
}

/** Returns the same rule as a CEL expression. @param object - expression of the resources */
function isWithin(object: string): string {
  // The API server's type checker does not know these maps of quantities.
  const resources = `dyn(${object})`;
  return ['limits', 'requests']
    .map(
      (list) =>
        `(!has(${resources}.${list}) || ${resources}.${list}.all(r, r in variables.policy.resources ? !quantity(${resources}.${list}[r]).isGreaterThan(quantity(variables.policy.resources[r])) : r in ${JSON.stringify(BASIC_RESOURCES)}))`,
    )
    .join(' && ');
}

/** Returns a pattern over `key=value`. Without a value it covers all values. */
export const toPairPattern = (pattern: string): string =>
  pattern.includes('=') ? pattern : `${pattern}=*`;

/** Returns the patterns of fields and of everything in them. */
export const withContent = (fields: readonly string[]): string[] =>
  fields.flatMap((field) => [field, `${field}.*`]);

function pairViolations(
  path: string,
  pairs: Readonly<Record<string, string>> = {},
  allowed: readonly string[],
): string[] {
  const patterns = allowed.map(toPairPattern);
  return Object.entries(pairs)
    .filter(([key, value]) => !matchesAny(patterns, `${key}=${value}`))
    .map(([key, value]) => `${path}: "${key}=${value}"`);
}

/** Returns labels or annotations without those that Holdfast sets. */
function withoutOwn(
  pairs: Readonly<Record<string, string>> = {},
  own: readonly string[],
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(pairs).filter(([key]) => !isReservedMetadata(key) && !own.includes(key)),
  );
}

function metadataCel(part: 'labels' | 'annotations', own: readonly string[]): string {
  const pairs = `object.metadata.${part}`;
  return `!has(${pairs}) || ${pairs}.all(k, k.startsWith("${RESERVED_METADATA_PREFIX}") || k in ${list([MANAGED_BY_LABEL, ...own])} || ${isCovered(`(k + "=" + ${pairs}[k])`, part)})`;
}

/**
 * Returns whether a field is the API server's default scheduler, which an exported pod contains.
 */
const isDefaultScheduler = ({ schedulerName }: V1PodSpec, path: string): boolean =>
  path === 'schedulerName' && schedulerName === 'default-scheduler';

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
): Refusal[] {
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

/**
 * Returns the kinds of a volume. The API server accepts exactly one. A volume without any is an
 * emptyDir.
 */
const kindsOf = (volume: V1Volume): string[] => {
  const kinds = Object.keys(volume).filter((field) => field !== 'name');
  return kinds.length === 0 ? ['emptyDir'] : kinds;
};
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
