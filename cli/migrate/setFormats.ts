/**
 * Formats of migrated sets: for `holdfast set apply`, as Kubernetes resources, or as values of the
 * chart. Pure.
 */
import type { RunnerSetInput } from '../../core/contract/index.ts';

/** Formats of `holdfast migrate arc --format`. */
export const SET_FORMATS = ['sets', 'runnerset', 'chart'] as const;
/** One of the {@link SET_FORMATS}. */
export type SetFormat = (typeof SET_FORMATS)[number];

/** YAML document with the paths of its sets. */
export interface SetDocument {
  readonly value: object;
  /**
   * For each set: the path that the paths of its notes are relative to, and the path of its
   * beginning.
   */
  readonly places: readonly {
    readonly start: readonly (string | number)[];
    readonly set: readonly (string | number)[];
  }[];
}

/** Returns the documents that contain the sets. */
export function setDocuments(sets: readonly RunnerSetInput[], format: SetFormat): SetDocument[] {
  switch (format) {
    case 'sets':
      return sets.map((value) => ({ value, places: [{ start: [], set: [] }] }));
    case 'runnerset':
      return sets.map((set) => ({
        value: runnerSetResource(set),
        places: [{ start: [], set: ['spec'] }],
      }));
    case 'chart':
      return [
        {
          value: { sets: sets.map(chartSet) },
          places: sets.map((_set, index) => ({
            start: ['sets', index],
            set: ['sets', index, 'set'],
          })),
        },
      ];
  }
}

function runnerSetResource({ name, ...spec }: RunnerSetInput): object {
  return { apiVersion: 'holdfast.dev/v1alpha1', kind: 'RunnerSet', metadata: { name }, spec };
}

/** Returns the chart values of a set. Fields without a value of their own are below `set`. */
function chartSet({ name, minIdle, max, replicas, ...set }: RunnerSetInput): object {
  const size =
    replicas === undefined
      ? { ...(minIdle === undefined ? {} : { minRunners: minIdle }), maxRunners: max }
      : { replicas };
  return { name, githubConfigUrl: configUrl(set.template), ...size, set };
}

/**
 * Returns the URL of the scope. Only its path matters, because the credential determines the
 * server.
 */
function configUrl({ organization, repository, enterprise }: RunnerSetInput['template']): string {
  const path = repository ?? organization ?? `enterprises/${enterprise ?? ''}`;
  return `https://github.com/${path}`;
}
