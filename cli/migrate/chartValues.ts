/**
 * Finds values of the chart gha-runner-scale-set in Flux and Argo CD objects and in values of
 * parent charts. Pure.
 */
import { isObject } from '../../core/domain/isObject.ts';
import { YamlError, yamlDocuments } from '../../worker/settings/yamlDocuments.ts';
import { getPath, toText } from './fieldRows.ts';

/** Value of a document or of a list item. */
export interface FoundValue {
  /** Label for messages: `arc.yaml, document 2`. */
  readonly source: string;
  readonly value: unknown;
}

/** Values of the chart gha-runner-scale-set, found in a document. */
export interface ChartValues {
  /** Label for messages: `arc.yaml, document 2, HelmRelease ci/linux`. */
  readonly label: string;
  /** Name of the Helm release, the default name of the scale set. Empty if unknown. */
  readonly release: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Values that identify the chart. */
const VALUES = [
  'githubConfigUrl',
  'githubConfigSecret',
  'runnerScaleSetName',
  'minRunners',
  'maxRunners',
  'containerMode',
  'template',
];

/** Returns whether an object has at least one value that identifies the chart. */
export function isChartValues(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && VALUES.some((key) => key in value);
}

/**
 * Returns the chart values in a document: at the top level, under the name of a subchart, in a
 * HelmRelease (Flux) or in an Application (Argo CD).
 * https://fluxcd.io/flux/components/helm/helmreleases/
 * https://argo-cd.readthedocs.io/en/stable/user-guide/helm/
 * @returns an empty list if there are none
 */
export function findChartValues({ source, value }: FoundValue): ChartValues[] {
  if (!isObject(value)) return [];
  const { apiVersion, kind } = value;
  if (apiVersion === undefined && kind === undefined) return valuesIn(value, source, '');
  const group = toText(apiVersion).split('/')[0];
  const name = toText(getPath(value, 'metadata', 'name'));
  const label = `${source}, ${toText(kind)} ${name}`;
  if (kind === 'HelmRelease' && group === 'helm.toolkit.fluxcd.io')
    return valuesIn(
      getPath(value, 'spec', 'values'),
      label,
      toText(getPath(value, 'spec', 'releaseName')) || name,
    );
  if (kind !== 'Application' || group !== 'argoproj.io') return [];
  const sources = getPath(value, 'spec', 'sources');
  return [getPath(value, 'spec', 'source'), ...(Array.isArray(sources) ? sources : [])].flatMap(
    (each) => {
      const release = toText(getPath(each, 'helm', 'releaseName')) || name;
      const values =
        getPath(each, 'helm', 'valuesObject') ?? parsed(getPath(each, 'helm', 'values'));
      return valuesIn(values, label, release);
    },
  );
}

/**
 * Returns the values themselves, or those one level below: a parent chart has them under the name
 * or alias of the subchart.
 */
function valuesIn(value: unknown, label: string, release: string): ChartValues[] {
  if (isChartValues(value)) return [{ label: `${label}, values`, release, values: value }];
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([subchart, values]) =>
    isChartValues(values) && values['githubConfigUrl'] !== undefined
      ? [{ label: `${label}, values of ${subchart}`, release, values }]
      : [],
  );
}

/** Parses text. Invalid YAML holds no values, and the installer rejects it too. */
function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return undefined;
  try {
    return yamlDocuments(text)[0]?.value;
  } catch (error) {
    if (error instanceof YamlError) return undefined;
    throw error;
  }
}
