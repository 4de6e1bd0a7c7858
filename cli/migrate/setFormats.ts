/**
 * Formats of migrated sets: for `holdfast set apply`, as Kubernetes resources, or as values of the
 * chart. Pure.
 */
import type { RunnerSetInput } from '../../core/contract/index.ts';

/** Formats of `holdfast migrate arc --format`. */
export const SET_FORMATS = ['sets', 'runnerset', 'chart'] as const;
/** One of {@link SET_FORMATS}. */
export type SetFormat = (typeof SET_FORMATS)[number];

/** A YAML document, and the place of each of its sets in it. */
export interface SetDocument {
  readonly value: object;
  /** Path of each set, to which the paths of its notes are relative; and that of its beginning. */
  readonly places: readonly {
    readonly start: readonly (string | number)[];
    readonly set: readonly (string | number)[];
  }[];
}

/** Returns the documents in which the sets are written. */
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

/** Everything that the chart has a value for is there, and the rest below `set`. */
function chartSet({ name, minIdle, max, replicas, ...set }: RunnerSetInput): object {
  const size =
    replicas === undefined
      ? { ...(minIdle === undefined ? {} : { minRunners: minIdle }), maxRunners: max }
      : { replicas };
  return { name, githubConfigUrl: configUrl(set.template), ...size, set };
}

/** Only its path counts: which server it is follows from the credential. */
function configUrl({ organization, repository, enterprise }: RunnerSetInput['template']): string {
  const path = repository ?? organization ?? `enterprises/${enterprise ?? ''}`;
  return `https://github.com/${path}`;
}
