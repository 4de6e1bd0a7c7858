/**
 * The rules of a pod policy, each in two forms. The check in this process names the field and the
 * fix before anything is created. The CEL expression lets the API server enforce the rule on a
 * compromised worker. It reads the policy from `variables.policy` (celPolicy.ts), so it is the same
 * for every policy. test/cluster/kubernetes.policy applies both to the same pods.
 */
import type { V1PodSpec, V1Volume } from '@kubernetes/client-node';
import {
  isReservedMetadata,
  MANAGED_BY_LABEL,
  RESERVED_METADATA_PREFIX,
  RESERVED_VOLUME_PREFIX,
} from '../../../../core/domain/podTemplate.ts';
import {
  ALLOWED_METADATA,
  ALLOWED_SPEC,
  allowedFieldsCel,
  type PodField,
  unnamedFields,
} from './allowedFields.ts';
import { matchesAny } from './patterns.ts';
import {
  all,
  celList,
  containerViolations,
  defined,
  everyContainer,
  everyVolume,
  isCovered,
  type PodRule,
  volumeViolations,
} from './podRule.ts';
import { CLAIM_RULE } from './claimRule.ts';
import { NODE_RULES } from './nodeRules.ts';
import { RESOURCE_RULE } from './resourceRule.ts';
import { SECRET_RULE } from './secretRule.ts';

/**
 * Kinds of volumes that every policy allows: those of Holdfast itself, except Secrets, which have a
 * rule by name; and `hostPath`, which has a rule of its own.
 */
const OWN_KINDS = ['downwardAPI', 'emptyDir', 'hostPath', 'persistentVolumeClaim'];

/** Annotations that Holdfast sets and that do not have its prefix. */
const OWN_ANNOTATIONS = ['kubectl.kubernetes.io/default-container'];

/** Annotation of the API server on a pod whose resources a LimitRange has completed. */
const LIMIT_RANGER = 'kubernetes.io/limit-ranger';

/** Taints that the API server lets every pod tolerate for a while. */
const OF_API_SERVER = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/** The rules of a pod policy, one per field. */
export const POD_RULES: readonly PodRule[] = [
  {
    field: 'images',
    violations: (pod, { images }, own) =>
      containerViolations(pod, ({ image = '' }, path) => [
        !matchesAny([...images, ...own.images], image) && `${path}.image: "${image}"`,
      ]),
    cel: everyContainer(isCovered('c.image', 'images')),
  },
  {
    field: 'namespaces',
    violations: ({ namespace }, _policy, { namespaces }) =>
      defined([!namespaces.includes(namespace) && `namespace: "${namespace}"`]),
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
        ...defined([
          name !== 'default' && `serviceAccountName: "${name}"`,
          token !== false && 'automountServiceAccountToken: its token',
        ]),
        ...volumeViolations(pod, ({ projected }, path) => [
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
  SECRET_RULE,
  CLAIM_RULE,
  {
    field: 'volumes',
    violations: (pod, { volumes }) =>
      volumeViolations(pod, (volume, path) => [
        kindsOf(volume).some(
          (kind) =>
            !OWN_KINDS.includes(kind) &&
            !(kind === 'secret' && volume.name.startsWith(RESERVED_VOLUME_PREFIX)) &&
            !volumes.includes(kind),
        ) && `${path}: a volume of the kind ${kindsOf(volume).join()}`,
      ]),
    cel: everyVolume(
      `dyn(v).all(k, k == "name" || k in ${celList(OWN_KINDS)} || (k == "secret" && v.name.startsWith("${RESERVED_VOLUME_PREFIX}")) || k in variables.policy.volumes)`,
    ),
  },
  ...NODE_RULES,
  {
    field: 'runtimeClasses',
    violations: ({ spec }, { runtimeClasses }) =>
      defined([
        spec.runtimeClassName !== undefined &&
          !matchesAny(runtimeClasses, spec.runtimeClassName) &&
          `runtimeClassName: "${spec.runtimeClassName}"`,
      ]),
    cel: `!has(object.spec.runtimeClassName) || ${isCovered('object.spec.runtimeClassName', 'runtimeClasses')}`,
  },
  {
    field: 'priorityClasses',
    violations: ({ spec }, { priorityClasses }) =>
      defined([
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
      defined(
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
      `(has(t.key) && t.key in ${celList(OF_API_SERVER)}) || ${isCovered('((has(t.key) ? t.key : "") + "=" + (has(t.operator) && t.operator == "Exists" ? "*" : has(t.value) ? t.value : ""))', 'tolerations')}`,
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
  RESOURCE_RULE,
  {
    field: 'template',
    violations: ({ template }, { template: mode }) =>
      defined(
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
  return `!has(${pairs}) || ${pairs}.all(k, k.startsWith("${RESERVED_METADATA_PREFIX}") || k in ${celList([MANAGED_BY_LABEL, ...own])} || ${isCovered(`(k + "=" + ${pairs}[k])`, part)})`;
}

/**
 * Returns whether a field is the API server's default scheduler, which an exported pod contains.
 */
const isDefaultScheduler = ({ schedulerName }: V1PodSpec, path: string): boolean =>
  path === 'schedulerName' && schedulerName === 'default-scheduler';

/**
 * Returns the kinds of a volume. The API server accepts exactly one. A volume without any is an
 * emptyDir.
 */
const kindsOf = (volume: V1Volume): string[] => {
  const kinds = Object.keys(volume).filter((field) => field !== 'name');
  return kinds.length === 0 ? ['emptyDir'] : kinds;
};
