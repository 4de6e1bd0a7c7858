/** Values of the chart gha-runner-scale-set inside what installs it: Flux, Argo CD, a chart around it. Pure. */
import { isObject } from '../../core/domain/isObject.ts';
import { YamlError, yamlDocuments } from '../../worker/settings/yamlDocuments.ts';
import { getPath, toText } from './fieldRows.ts';

/** What a document or an item of a list holds. */
export interface FoundValue {
  /** For messages: `arc.yaml, document 2`. */
  readonly source: string;
  readonly value: unknown;
}

export interface ChartValues {
  /** For messages: `arc.yaml, document 2, HelmRelease ci/linux`. */
  readonly label: string;
  /** Name of the Helm release, which the scale set has where its values do not name it. Empty: not known. */
  readonly release: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** What values of the chart have at least one of. */
const VALUES = [
  'githubConfigUrl',
  'githubConfigSecret',
  'runnerScaleSetName',
  'minRunners',
  'maxRunners',
  'containerMode',
  'template',
];

export function isChartValues(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && VALUES.some((key) => key in value);
}

/**
 * Returns the values that a document holds: its own, those under the name of a subchart, those of a
 * HelmRelease (Flux) or of an Application (Argo CD). Empty: none.
 * https://fluxcd.io/flux/components/helm/helmreleases/ https://argo-cd.readthedocs.io/en/stable/user-guide/helm/
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

/** Themselves, or one level down: a chart around it has them under the subchart's name or alias. */
function valuesIn(value: unknown, label: string, release: string): ChartValues[] {
  if (isChartValues(value)) return [{ label: `${label}, values`, release, values: value }];
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([subchart, values]) =>
    isChartValues(values) && values['githubConfigUrl'] !== undefined
      ? [{ label: `${label}, values of ${subchart}`, release, values }]
      : [],
  );
}

/** Text that is no YAML holds no values: the installer rejects it, too. */
function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return undefined;
  try {
    return yamlDocuments(text)[0]?.value;
  } catch (error) {
    if (error instanceof YamlError) return undefined;
    throw error;
  }
}
