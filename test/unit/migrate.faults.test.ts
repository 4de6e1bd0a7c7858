import { describe, expect, test } from '@jest/globals';
import { convertArc } from '../../cli/migrate/convertArc.ts';
import {
  autoscaler,
  deployment,
  legacy,
  NOW,
  OVERRIDE,
  scaleSet,
} from '../support/migratedSets.ts';

const faultsOf = (...values: readonly unknown[]): string[] =>
  convertArc(
    values.map((value) => ({ source: 'document 1', value })),
    { now: NOW },
  ).errors.map(({ field, message }) => `${field} ${message}`);

describe('what is wrong is told with its object and field', () => {
  test.each<[string, unknown[], RegExp]>([
    [
      'no scope',
      [legacy('RunnerDeployment', { template: { spec: { dockerEnabled: false } } })],
      /^document 1, RunnerDeployment arc\/linux: template\.organization of the set is missing/,
    ],
    [
      'an address of nothing',
      [scaleSet({ githubConfigUrl: 'https://github.com/' })],
      /AutoscalingRunnerSet arc\/linux: spec\.githubConfigUrl must be the address/,
    ],
    [
      'an address with too much',
      [scaleSet({ githubConfigUrl: 'https://github.com/a/b/c' })],
      /spec\.githubConfigUrl must be/,
    ],
    [
      'an address that is none',
      [scaleSet({ githubConfigUrl: ['x'] })],
      /spec\.githubConfigUrl must be/,
    ],
    ['no address', [scaleSet({ githubConfigUrl: '' })], /spec\.githubConfigUrl is missing/],
    [
      'values without a name',
      [{ githubConfigUrl: 'https://github.com/acme' }],
      /document 1, values: runnerScaleSetName .*--release/,
    ],
    [
      'another container mode',
      [
        {
          githubConfigUrl: 'https://github.com/acme',
          runnerScaleSetName: 'x',
          containerMode: { type: 'vm' },
        },
      ],
      /containerMode\.type must be/,
    ],
    [
      'containers that are no list',
      [scaleSet({ template: { spec: { containers: {} } } })],
      /spec\.template\.spec\.containers must be a list of objects/,
    ],
    [
      'mounts that are no list',
      [scaleSet({ template: { spec: { containers: [{ name: 'runner', volumeMounts: 'x' }] } } })],
      /containers\[0\]\.volumeMounts must be a list of objects/,
    ],
    ['a template that is none', [scaleSet({ template: 'x' })], /spec\.template must be an object/],
    [
      'labels that are no list',
      [deployment({ labels: 'x' })],
      /spec\.template\.spec\.labels must be a list/,
    ],
    [
      'a label that is none',
      [deployment({ labels: ['a\nb'] })],
      /: spec\.template\.spec\.labels \(template\.labels\.1 of the set\) must be 1 to 256 characters/,
    ],
    ['a number that is none', [scaleSet({ minRunners: 'two' })], /: spec\.minRunners \(minIdle/],
    [
      'a least of an autoscaler that is none',
      [deployment({}), autoscaler({ minReplicas: 'two' })],
      /: HorizontalRunnerAutoscaler linux: spec\.minReplicas \(minIdle of the set\)/,
    ],
    [
      'a least that is more than the most',
      [scaleSet({ minRunners: 6 })],
      /: spec\.minRunners \(minIdle of the set\) is more than max/,
    ],
    [
      'a volume of a name that is taken',
      [scaleSet({ template: { spec: { volumes: [{ name: 'holdfast-x', emptyDir: {} }] } } })],
      /template\.pod\.spec\.volumes\.0 of the set/,
    ],
    [
      'a pod that is none',
      [scaleSet({ template: { spec: { containers: [{ name: 'runner', ports: 5 }] } } })],
      /template\.pod of the set does not match/,
    ],
    [
      'no maximum',
      [deployment({}), autoscaler({ maxReplicas: undefined })],
      /HorizontalRunnerAutoscaler linux: spec\.maxReplicas is missing/,
    ],
    [
      'an override that ends before it begins',
      [deployment({}), autoscaler({ scheduledOverrides: [{ startTime: 'x' }] })],
      /scheduledOverrides\[0\] must have a startTime and a later endTime/,
    ],
    [
      'a frequency that is none',
      [
        deployment({}),
        autoscaler({
          scheduledOverrides: [{ ...OVERRIDE, recurrenceRule: { frequency: 'toString' } }],
        }),
      ],
      /frequency must be Daily/,
    ],
  ])('%s', (_title, values, message) => {
    expect(faultsOf(...values)).toEqual(expect.arrayContaining([expect.stringMatching(message)]));
  });
});
