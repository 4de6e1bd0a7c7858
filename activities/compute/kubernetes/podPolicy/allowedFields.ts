/**
 * The fields that a pod may have: an allow-list over Kubernetes' description of a pod. A field that
 * is not here is rejected unless `fields` of the policy names it, so a field that a later version
 * of Kubernetes adds is rejected too. Rules of their own judge the values of some of these fields
 * (podRules.ts). test/unit/podPolicy.fields holds every field of the API's description to it.
 */

/**
 * Allowed fields of an object. `true` allows any content, `[tree]` is a list of such objects.
 */
export interface FieldTree {
  readonly [field: string]: true | FieldTree | readonly [FieldTree];
}

const allow = (...names: readonly string[]): Record<string, true> =>
  Object.fromEntries(names.map((name) => [name, true] as const));

const OBJECT_REF = allow('name', 'optional');
const KEY_REF = allow('name', 'key', 'optional');
const FIELD_REF = allow('apiVersion', 'fieldPath');
const RESOURCE_FIELD_REF = allow('containerName', 'divisor', 'resource');
const RESOURCES = allow('limits', 'requests');
const EXEC: FieldTree = allow('command');
// No host: the kubelet would send the request from the node to any address.
const HTTP_GET: FieldTree = {
  ...allow('path', 'port', 'scheme'),
  httpHeaders: [allow('name', 'value')],
};

const PROBE: FieldTree = {
  ...allow(
    'failureThreshold',
    'initialDelaySeconds',
    'periodSeconds',
    'successThreshold',
    'terminationGracePeriodSeconds',
    'timeoutSeconds',
  ),
  exec: EXEC,
  httpGet: HTTP_GET,
  tcpSocket: allow('port'),
  grpc: allow('port', 'service'),
};
const HOOK: FieldTree = { exec: EXEC, httpGet: HTTP_GET, sleep: allow('seconds') };
// Both profiles are judged by `privileged`.
const PROFILE = allow('type');
/** Fields of a security context that only `privileged` opens. */
export const PRIVILEGED_CONTEXT_FIELDS = ['seLinuxOptions', 'windowsOptions'] as const;
const OPENED_BY_PRIVILEGED = allow(...PRIVILEGED_CONTEXT_FIELDS);

const CONTAINER: FieldTree = {
  ...allow(
    'args',
    'command',
    'image',
    'imagePullPolicy',
    'name',
    'restartPolicy',
    'stdin',
    'stdinOnce',
    'terminationMessagePath',
    'terminationMessagePolicy',
    'tty',
    'workingDir',
  ),
  env: [
    {
      ...allow('name', 'value'),
      valueFrom: {
        configMapKeyRef: KEY_REF,
        fieldRef: FIELD_REF,
        resourceFieldRef: RESOURCE_FIELD_REF,
        secretKeyRef: KEY_REF,
      },
    },
  ],
  envFrom: [{ ...allow('prefix'), configMapRef: OBJECT_REF, secretRef: OBJECT_REF }],
  lifecycle: { ...allow('stopSignal'), postStart: HOOK, preStop: HOOK },
  livenessProbe: PROBE,
  ports: [allow('containerPort', 'hostIP', 'hostPort', 'name', 'protocol')],
  readinessProbe: PROBE,
  resizePolicy: [allow('resourceName', 'restartPolicy')],
  resources: RESOURCES,
  securityContext: {
    ...allow(
      'allowPrivilegeEscalation',
      'privileged',
      'procMount',
      'readOnlyRootFilesystem',
      'runAsGroup',
      'runAsNonRoot',
      'runAsUser',
    ),
    ...OPENED_BY_PRIVILEGED,
    appArmorProfile: PROFILE,
    capabilities: allow('add', 'drop'),
    seccompProfile: PROFILE,
  },
  startupProbe: PROBE,
  volumeDevices: [allow('devicePath', 'name')],
  volumeMounts: [
    allow('mountPath', 'name', 'readOnly', 'recursiveReadOnly', 'subPath', 'subPathExpr'),
  ],
};

const ITEM = allow('key', 'mode', 'path');
const DOWNWARD_ITEM: FieldTree = {
  ...allow('mode', 'path'),
  fieldRef: FIELD_REF,
  resourceFieldRef: RESOURCE_FIELD_REF,
};
/**
 * Kinds of volumes whose fields are checked. All others are rejected unless `volumes` names them.
 */
const VOLUME: FieldTree = {
  ...allow('name'),
  configMap: { ...allow('defaultMode', 'name', 'optional'), items: [ITEM] },
  downwardAPI: { ...allow('defaultMode'), items: [DOWNWARD_ITEM] },
  emptyDir: allow('medium', 'sizeLimit'),
  ephemeral: {
    volumeClaimTemplate: {
      // The API server adds an empty metadata of its own.
      metadata: allow('creationTimestamp'),
      spec: {
        ...allow('accessModes', 'storageClassName', 'volumeMode'),
        dataSource: allow('apiGroup', 'kind', 'name'),
        dataSourceRef: allow('apiGroup', 'kind', 'name', 'namespace'),
        resources: RESOURCES,
        selector: allow('matchExpressions', 'matchLabels'),
      },
    },
  },
  hostPath: allow('path', 'type'),
  persistentVolumeClaim: allow('claimName', 'readOnly'),
  projected: {
    ...allow('defaultMode'),
    sources: [
      {
        configMap: { ...allow('name', 'optional'), items: [ITEM] },
        downwardAPI: { items: [DOWNWARD_ITEM] },
        secret: { ...allow('name', 'optional'), items: [ITEM] },
        serviceAccountToken: allow('audience', 'expirationSeconds', 'path'),
      },
    ],
  },
  secret: { ...allow('defaultMode', 'optional', 'secretName'), items: [ITEM] },
};

/** Allowed fields of a pod's spec. */
export const ALLOWED_SPEC: FieldTree = {
  ...allow(
    'automountServiceAccountToken',
    'dnsPolicy',
    'enableServiceLinks',
    'hostIPC',
    'hostNetwork',
    'hostPID',
    'hostUsers',
    'nodeSelector',
    'priorityClassName',
    'restartPolicy',
    'runtimeClassName',
    'serviceAccountName',
    'shareProcessNamespace',
    'terminationGracePeriodSeconds',
  ),
  containers: [CONTAINER],
  imagePullSecrets: [allow('name')],
  initContainers: [CONTAINER],
  resources: RESOURCES,
  securityContext: {
    ...allow(
      'fsGroup',
      'fsGroupChangePolicy',
      'runAsGroup',
      'runAsNonRoot',
      'runAsUser',
      'supplementalGroups',
      'supplementalGroupsPolicy',
      'sysctls',
    ),
    ...OPENED_BY_PRIVILEGED,
    appArmorProfile: PROFILE,
    seccompProfile: PROFILE,
  },
  tolerations: [allow('effect', 'key', 'operator', 'tolerationSeconds', 'value')],
  volumes: [VOLUME],
};

/** Allowed fields of a pod's metadata in a template. */
export const ALLOWED_METADATA: FieldTree = allow('annotations', 'labels');

/**
 * Fields that only the API server sets: their values follow from other fields, or it rejects any
 * other value.
 */
const SET_BY_API_SERVER = ['overhead', 'preemptionPolicy', 'priority', 'serviceAccount'];

/** Fields of volumes. The rule `volumes` checks them as a whole. */
const WITHOUT_OWN_KEYS: ReadonlySet<string> = new Set(['volumes']);

/**
 * Returns the path of a field as in `fields` of the policy. Init containers count as containers.
 */
const pathOf = (parent: string, field: string): string =>
  parent === '' ? field : `${parent}.${field}`.replace(/^initContainers\b/, 'containers');

/** A field of a pod. */
export interface PodField {
  /** Path in the pod, with indexes: `containers[0].volumeMounts[1].mountPropagation`. */
  readonly path: string;
  /** Path as the policy writes it: `containers.volumeMounts.mountPropagation`. */
  readonly field: string;
}

/**
 * Returns the fields of an object that the tree does not have.
 * @throws TypeError if a part of it is not an object or list as the API describes it
 */
export function unnamedFields(object: unknown, tree: FieldTree, path = '', field = ''): PodField[] {
  if (typeof object !== 'object' || object === null || Array.isArray(object))
    throw new TypeError(`${path}: not an object`);
  return Object.entries(object).flatMap(([name, value]: [string, unknown]) => {
    if (value === undefined || value === null) return [];
    const at = { path: path === '' ? name : `${path}.${name}`, field: pathOf(field, name) };
    const allowed = Object.hasOwn(tree, name) ? tree[name] : undefined;
    if (allowed === undefined) return WITHOUT_OWN_KEYS.has(field) ? [] : [at];
    if (allowed === true) return [];
    if (!isList(allowed)) return unnamedFields(value, allowed, at.path, at.field);
    if (!Array.isArray(value)) throw new TypeError(`${at.path}: not a list`);
    return value.flatMap((item: unknown, index) =>
      unnamedFields(item, allowed[0], `${at.path}[${index}]`, at.field),
    );
  });
}

const isList = (allowed: FieldTree | readonly [FieldTree]): allowed is readonly [FieldTree] =>
  Array.isArray(allowed);

/**
 * Returns a CEL condition that the pod has no other fields. It is an allow-list there too: it goes
 * through the fields that the object has. `variables.containers` are all containers of the pod.
 */
export function allowedFieldsCel(): string {
  const { containers: _containers, initContainers: _init, ...spec } = ALLOWED_SPEC;
  const ofServer = allow(...SET_BY_API_SERVER, 'containers', 'initContainers');
  return [
    objectCel('object.spec', { ...spec, ...ofServer }, '', {
      extra: '(k == "schedulerName" && object.spec.schedulerName == "default-scheduler")',
    }),
    `variables.containers.all(i0, ${objectCel('i0', CONTAINER, 'containers', { depth: 1 })})`,
  ].join(' && ');
}

/**
 * Returns the CEL expression for an object.
 * @param depth - number of enclosing lists, whose items are `i0`, `i1` and so on
 */
function objectCel(
  object: string,
  tree: FieldTree,
  field: string,
  { depth = 0, extra }: { readonly depth?: number; readonly extra?: string } = {},
): string {
  const keys = [
    `k in ${JSON.stringify(Object.keys(tree))}`,
    ...(extra === undefined ? [] : [extra]),
    `variables.policy.fields.exists(p, ("${pathOf(field, '')}" + k).matches(p))`,
  ];
  const own = WITHOUT_OWN_KEYS.has(field) ? [] : [`dyn(${object}).all(k, ${keys.join(' || ')})`];
  const parts = Object.entries(tree).flatMap(([name, allowed]) => {
    if (allowed === true) return [];
    // `namespace` is a reserved word of CEL, but no object here has that name.
    const part = `${object}.${name}`;
    const at = pathOf(field, name);
    const condition = isList(allowed)
      ? `${part}.all(i${depth}, ${objectCel(`i${depth}`, allowed[0], at, { depth: depth + 1 })})`
      : objectCel(part, allowed, at, { depth });
    return [`(!has(${part}) || (${condition}))`];
  });
  return [...own, ...parts].join(' && ');
}
