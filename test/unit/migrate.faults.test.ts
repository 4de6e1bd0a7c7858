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

describe('errors name the object and the field', () => {
  test.each<[string, unknown[], RegExp]>([
    [
      'no scope',
      [legacy('RunnerDeployment', { template: { spec: { dockerEnabled: false } } })],
      /^document 1, RunnerDeployment arc\/linux: template\.organization of the set is missing/,
    ],
    [
      'an address without an organization or repository',
      [scaleSet({ githubConfigUrl: 'https://github.com/' })],
      /AutoscalingRunnerSet arc\/linux: spec\.githubConfigUrl must be the address/,
    ],
    [
      'an address with too many segments',
      [scaleSet({ githubConfigUrl: 'https://github.com/a/b/c' })],
      /spec\.githubConfigUrl must be/,
    ],
    ['an invalid address', [scaleSet({ githubConfigUrl: ['x'] })], /spec\.githubConfigUrl must be/],
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
      'containers that are not a list',
      [scaleSet({ template: { spec: { containers: {} } } })],
      /spec\.template\.spec\.containers must be a list of objects/,
    ],
    [
      'mounts that are not a list',
      [scaleSet({ template: { spec: { containers: [{ name: 'runner', volumeMounts: 'x' }] } } })],
      /containers\[0\]\.volumeMounts must be a list of objects/,
    ],
    ['an invalid template', [scaleSet({ template: 'x' })], /spec\.template must be an object/],
    [
      'labels that are not a list',
      [deployment({ labels: 'x' })],
      /spec\.template\.spec\.labels must be a list/,
    ],
    [
      'an invalid label',
      [deployment({ labels: ['a\nb'] })],
      /: spec\.template\.spec\.labels \(template\.labels\.1 of the set\) must be 1 to 256 characters/,
    ],
    ['an invalid number', [scaleSet({ minRunners: 'two' })], /: spec\.minRunners \(minIdle/],
    [
      'an invalid minimum of an autoscaler',
      [deployment({}), autoscaler({ minReplicas: 'two' })],
      /: HorizontalRunnerAutoscaler linux: spec\.minReplicas \(minIdle of the set\)/,
    ],
    [
      'a minimum above the maximum',
      [scaleSet({ minRunners: 6 })],
      /: spec\.minRunners \(minIdle of the set\) is more than max/,
    ],
    [
      'a volume with a name in use',
      [scaleSet({ template: { spec: { volumes: [{ name: 'holdfast-x', emptyDir: {} }] } } })],
      /template\.pod\.spec\.volumes\.0 of the set/,
    ],
    [
      'an invalid pod',
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
      'an invalid frequency',
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
