/**
 * Finds the objects of actions-runner-controller (ARC) that define runners. Their fields are not
 * validated. Pure.
 */
import { stripControlCharacters, truncate } from '../../core/domain/displayText.ts';
import { exceedsMaxDepth, MAX_DEPTH } from '../../core/domain/maxDepth.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { findChartValues, type ChartValues, type FoundValue } from './chartValues.ts';
import { toText } from './fieldRows.ts';

/** Fields of an object, not validated. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * Kinds of ARC objects that define runners. `values` are the values of the chart
 * gha-runner-scale-set.
 */
export type ArcKind =
  | 'AutoscalingRunnerSet'
  | 'RunnerDeployment'
  | 'RunnerReplicaSet'
  | 'RunnerSet'
  | 'Runner'
  | 'HorizontalRunnerAutoscaler'
  | 'values';

/** Object of actions-runner-controller, or values of its chart. */
export interface ArcObject {
  /** Label for messages: `arc.yaml, document 2, RunnerDeployment ci/linux`. */
  readonly label: string;
  readonly kind: ArcKind;
  /** Name of the object. Empty for chart values, because the release has the name. */
  readonly name: string;
  readonly namespace: string | undefined;
  readonly annotations: Fields;
  /** Spec of an object, or values of a chart. */
  readonly fields: Fields;
}

/** Object that is not migrated, with the reason. */
export interface SkippedObject {
  readonly label: string;
  readonly reason: string;
}

const LEGACY_GROUP = 'actions.summerwind.dev';
const SCALE_SET_GROUP = 'actions.github.com';
const KINDS: Readonly<Record<string, ArcKind>> = {
  [`${SCALE_SET_GROUP} AutoscalingRunnerSet`]: 'AutoscalingRunnerSet',
  [`${LEGACY_GROUP} RunnerDeployment`]: 'RunnerDeployment',
  [`${LEGACY_GROUP} RunnerReplicaSet`]: 'RunnerReplicaSet',
  [`${LEGACY_GROUP} RunnerSet`]: 'RunnerSet',
  [`${LEGACY_GROUP} Runner`]: 'Runner',
  [`${LEGACY_GROUP} HorizontalRunnerAutoscaler`]: 'HorizontalRunnerAutoscaler',
};
/** Maximum length of a name in a message (characters). */
const MAX_NAME = 100;

/** Returns the objects of ARC in the order in which they were found, and the skipped ones. */
export function findArcObjects(found: readonly FoundValue[]): {
  objects: ArcObject[];
  leftOut: SkippedObject[];
} {
  const objects: ArcObject[] = [];
  const leftOut: SkippedObject[] = [];
  for (const each of found.flatMap(itemsOf)) {
    const read = readObject(each);
    if ('reason' in read) leftOut.push(read);
    else objects.push(...[read].flat());
  }
  return { objects, leftOut };
}

/** Returns the items of a List, as `kubectl get -o yaml` prints it. */
function itemsOf({ source, value }: FoundValue): FoundValue[] {
  if (value === null || value === undefined) return [];
  if (!isObject(value) || !toText(value['kind']).endsWith('List') || !Array.isArray(value['items']))
    return [{ source, value }];
  return value['items'].map((item: unknown, index) => ({
    source: `${source}, item ${index + 1}`,
    value: item,
  }));
}

function readObject({ source, value }: FoundValue): ArcObject | ArcObject[] | SkippedObject {
  if (!isObject(value)) return { label: source, reason: 'is no object' };
  if (exceedsMaxDepth(value))
    return {
      label: source,
      reason: `is nested more than ${MAX_DEPTH} levels deep, as no such object is: sets made of it could not be read`,
    };
  const { apiVersion, kind } = value;
  const charts = findChartValues({ source, value });
  if (charts.length > 0) return charts.map(objectOfValues);
  if (apiVersion === undefined && kind === undefined) {
    return {
      label: source,
      reason: 'neither an object of Kubernetes nor values of the chart gha-runner-scale-set',
    };
  }
  const metadata = isObject(value['metadata']) ? value['metadata'] : {};
  const [name = '', namespace] = [textOf(metadata['name']), textOf(metadata['namespace'])];
  const label =
    `${source}, ${shown(kind)} ${namespace === undefined ? '' : `${shown(namespace)}/`}${shown(name)}`.trimEnd();
  const group = typeof apiVersion === 'string' ? (apiVersion.split('/')[0] ?? '') : '';
  const known = Object.hasOwn(KINDS, `${group} ${toText(kind)}`)
    ? KINDS[`${group} ${toText(kind)}`]
    : undefined;
  if (known === undefined) return { label, reason: reasonFor(group, toText(kind)) };
  if (Array.isArray(metadata['ownerReferences']) && metadata['ownerReferences'].length > 0)
    return { label, reason: 'made by ARC from the object that owns it' };
  return {
    label,
    kind: known,
    name,
    namespace,
    annotations: isObject(metadata['annotations']) ? metadata['annotations'] : {},
    fields: isObject(value['spec']) ? value['spec'] : {},
  };
}

function objectOfValues({ label, release, values }: ChartValues): ArcObject {
  return {
    label: stripControlCharacters(truncate(label, 3 * MAX_NAME)),
    kind: 'values',
    name: release,
    namespace: textOf(values['namespaceOverride']),
    annotations: {},
    fields: values,
  };
}

/** Objects that ARC creates from an AutoscalingRunnerSet. */
const MADE_FROM_SCALE_SETS = ['AutoscalingListener', 'EphemeralRunner', 'EphemeralRunnerSet'];

function reasonFor(group: string, kind: string): string {
  if (['helm.toolkit.fluxcd.io', 'argoproj.io'].includes(group))
    return 'no values of the chart gha-runner-scale-set are in it: give them as a file of their own';
  if (group === SCALE_SET_GROUP && MADE_FROM_SCALE_SETS.includes(kind))
    return 'made by ARC from its AutoscalingRunnerSet';
  const meant = Object.keys(KINDS).find((known) => known.endsWith(` ${kind}`));
  return meant === undefined
    ? 'no runners come from this kind: it stays as it is'
    : `its apiVersion is not that of ARC: ${meant.split(' ')[0]}/v1alpha1`;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
const shown = (value: unknown): string => truncate(stripControlCharacters(toText(value)), MAX_NAME);
