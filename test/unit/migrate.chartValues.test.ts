/** Values of the chart gha-runner-scale-set, in all objects that can contain them. */
import { describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { convertArc } from '../../cli/migrate/convertArc.ts';
import { NOW, type Fields } from '../support/migratedSets.ts';

const VALUES = { githubConfigUrl: 'https://github.com/acme', maxRunners: 5 };

const flux = (spec: Fields): Fields => ({
  apiVersion: 'helm.toolkit.fluxcd.io/v2',
  kind: 'HelmRelease',
  metadata: { name: 'linux', namespace: 'arc' },
  spec,
});
const argo = (spec: Fields): Fields => ({
  apiVersion: 'argoproj.io/v1alpha1',
  kind: 'Application',
  metadata: { name: 'linux' },
  spec,
});

function names(value: unknown): string[] {
  const { sets, errors } = convertArc([{ source: 'a.yaml', value }], { now: NOW });
  expect(errors).toEqual([]);
  return sets.map(({ input }) => input.name);
}

describe('values of the chart are found', () => {
  test.each<[where: string, value: unknown, names: string[]]>([
    ['in a HelmRelease of Flux', flux({ values: VALUES }), ['linux']],
    ['… with a release name', flux({ releaseName: 'big', values: VALUES }), ['big']],
    [
      '… that names the scale set',
      flux({ values: { ...VALUES, runnerScaleSetName: 'gpu' } }),
      ['gpu'],
    ],
    [
      'in an Application of Argo CD',
      argo({ source: { helm: { valuesObject: VALUES } } }),
      ['linux'],
    ],
    ['… as a string', argo({ source: { helm: { values: stringify(VALUES) } } }), ['linux']],
    [
      '… of several sources',
      argo({
        sources: [
          { helm: { releaseName: 'one', valuesObject: VALUES } },
          { ref: 'values' },
          { helm: { releaseName: 'two', valuesObject: VALUES } },
        ],
      }),
      ['one', 'two'],
    ],
    [
      'under the names of subcharts',
      flux({
        values: {
          linux: { ...VALUES, runnerScaleSetName: 'small' },
          gpu: { ...VALUES, runnerScaleSetName: 'gpu' },
          global: { template: 'x' },
        },
      }),
      ['small', 'gpu'],
    ],
    [
      '… in a values file',
      { 'gha-runner-scale-set': { ...VALUES, runnerScaleSetName: 'linux' } },
      ['linux'],
    ],
  ])('%s', (_where, value, expected) => {
    expect(names(value)).toEqual(expected);
  });
});

test.each([
  ['a HelmRelease of the controller', flux({ values: { replicaCount: 2 } })],
  [
    'an Application whose values are in Git',
    argo({ source: { helm: { valueFiles: ['v.yaml'] } } }),
  ],
  ['an Application whose values are not valid YAML', argo({ source: { helm: { values: '{' } } })],
])('%s has no values, and causes a message', (_what, value) => {
  const { sets, skipped } = convertArc([{ source: 'a.yaml', value }], { now: NOW });
  expect(sets).toEqual([]);
  expect(skipped).toMatchObject([{ reason: expect.stringContaining('no values of the chart') }]);
});
