import { describe, expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { isReservedEnv } from '../../../core/domain/podTemplate.ts';
import { podTemplateErrors, workerTemplateErrors } from '../../../core/input/podTemplate.ts';

type PodTemplate = NonNullable<RunnerInput['pod']>;

const runner = (fields: object): PodTemplate => ({
  spec: { containers: [{ name: 'runner', ...fields }] },
});

describe('a pod template may have', () => {
  test.each<[string, PodTemplate]>([
    ['nothing', {}],
    [
      'labels and annotations',
      { metadata: { labels: { team: 'a' }, annotations: { 'example.com/a': '1' } } },
    ],
    [
      'a full spec',
      {
        spec: {
          restartPolicy: 'Never',
          nodeSelector: { disk: 'ssd' },
          volumes: [{ name: 'work', emptyDir: {} }],
          initContainers: [
            {
              name: 'dind',
              restartPolicy: 'Always',
              image: 'docker:dind',
              env: [{ name: 'RUNNER_NAME', value: 'mine' }],
            },
          ],
          containers: [
            {
              name: 'runner',
              env: [{ name: 'A', value: 'b' }],
              volumeMounts: [{ name: 'work', mountPath: '/work' }],
            },
            { name: 'proxy' },
          ],
        },
      },
    ],
  ])('%s', (_, template) => {
    expect(podTemplateErrors(template)).toEqual([]);
  });
});

describe('a pod template may not have', () => {
  test.each<[string, PodTemplate, string]>([
    [
      'a reserved label',
      { metadata: { labels: { 'holdfast.dev/installation': 'x' } } },
      'reserved metadata.labels',
    ],
    [
      'the managed-by label',
      { metadata: { labels: { 'app.kubernetes.io/managed-by': 'helm' } } },
      'reserved metadata.labels',
    ],
    [
      "a label of ARC's",
      { metadata: { labels: { 'runner-deployment-name': 'linux' } } },
      'reserved metadata.labels',
    ],
    [
      'a reserved annotation',
      { metadata: { annotations: { 'holdfast.dev/probes': 'true' } } },
      'reserved metadata.annotations',
    ],
    [
      'another restart policy',
      { spec: { restartPolicy: 'OnFailure' } },
      'invalid spec.restartPolicy',
    ],
    [
      'an active deadline',
      { spec: { activeDeadlineSeconds: 5 } },
      'reserved spec.activeDeadlineSeconds',
    ],
    [
      'a grace period',
      { spec: { terminationGracePeriodSeconds: 5 } },
      'reserved spec.terminationGracePeriodSeconds',
    ],
    ['containers of a wrong type', { spec: { containers: {} } }, 'invalid spec.containers'],
    [
      'a container without a name',
      { spec: { containers: [{ image: 'x' }] } },
      'required spec.containers.0',
    ],
    [
      'two containers of one name',
      { spec: { containers: [{ name: 'a' }], initContainers: [{ name: 'a' }] } },
      'duplicate spec.initContainers.0',
    ],
    [
      'an init container called runner',
      { spec: { initContainers: [{ name: 'runner' }] } },
      'reserved spec.initContainers.0',
    ],
    [
      'a container with the name of the registration container',
      { spec: { containers: [{ name: 'holdfast-register' }] } },
      'reserved spec.containers.0',
    ],
    [
      'a registration container with restartPolicy Always',
      { spec: { initContainers: [{ name: 'holdfast-register', restartPolicy: 'Always' }] } },
      'not_applicable spec.initContainers.0.restartPolicy',
    ],
    [
      "a reserved variable in the registration's container",
      {
        spec: { initContainers: [{ name: 'holdfast-register', env: [{ name: 'RUNNER_TOKEN' }] }] },
      },
      'reserved spec.initContainers.0.env.0',
    ],
    [
      'two volumes of one name',
      { spec: { volumes: [{ name: 'a' }, { name: 'a' }] } },
      'duplicate spec.volumes.1',
    ],
    [
      'a reserved volume',
      { spec: { volumes: [{ name: 'holdfast-supervisor' }] } },
      'reserved spec.volumes.0',
    ],
    [
      'a mount of a reserved volume',
      runner({ volumeMounts: [{ name: 'holdfast-supervisor', mountPath: '/x' }] }),
      'reserved spec.containers.0.volumeMounts.0',
    ],
    [
      "another container's mount of the registration",
      {
        spec: {
          initContainers: [
            { name: 'x', volumeMounts: [{ name: 'holdfast-registration', mountPath: '/x' }] },
          ],
        },
      },
      'reserved spec.initContainers.0.volumeMounts.0',
    ],
    [
      'RUNNER_NAME',
      runner({ env: [{ name: 'RUNNER_NAME', value: 'x' }] }),
      'reserved spec.containers.0.env.0',
    ],
    [
      'the JIT config',
      runner({ env: [{ name: 'A' }, { name: 'ACTIONS_RUNNER_INPUT_JITCONFIG' }] }),
      'reserved spec.containers.0.env.1',
    ],
    [
      'a preStop hook',
      runner({ lifecycle: { preStop: { sleep: { seconds: 20 } } } }),
      'reserved spec.containers.0.lifecycle.preStop',
    ],
    [
      'a stop signal',
      runner({ lifecycle: { stopSignal: 'SIGUSR1' } }),
      'reserved spec.containers.0.lifecycle.stopSignal',
    ],
    [
      'a termination message path in reserved folders',
      runner({ terminationMessagePath: '/holdfast/message' }),
      'reserved spec.containers.0.terminationMessagePath',
    ],
    [
      'a variable given twice',
      runner({ env: [{ name: 'A' }, { name: 'A' }] }),
      'duplicate spec.containers.0.env.1',
    ],
  ])('%s', (_, template, expected) => {
    expect(workerTemplateErrors(template).map(({ code, field }) => `${code} ${field}`)).toEqual([
      expected,
    ]);
    expect(podTemplateErrors(template).map(({ code, field }) => `${code} ${field}`)).toContain(
      expected,
    );
  });

  test("a registration container is only allowed in the worker's own template", () => {
    const template = { spec: { initContainers: [{ name: 'holdfast-register', image: 'x' }] } };
    expect(workerTemplateErrors(template)).toEqual([]);
    expect(podTemplateErrors(template)).toEqual([
      expect.objectContaining({ code: 'reserved', field: 'spec.initContainers.0' }),
    ]);
  });

  test('all errors are reported at once', () => {
    expect(
      podTemplateErrors({
        metadata: { labels: { 'holdfast.dev/a': '' } },
        spec: { restartPolicy: 'Always', containers: 1 },
      }),
    ).toHaveLength(3);
  });
});

test.each([
  ['RUNNER_NAME', true],
  ['RUNNER_TOKEN', true],
  ['RUNNER_URL', true],
  ['ACTIONS_RUNNER_INPUT_URL', true],
  ['HOLDFAST_STOP_REASON', true],
  ['RUNNER_TOOL_CACHE', false],
  ['PATH', false],
])('isReservedEnv(%s) is %s', (name, expected) => {
  expect(isReservedEnv(name)).toBe(expected);
});

test('a deeply nested template is rejected', () => {
  let nested: unknown = 'deep';
  for (let depth = 0; depth < 100_000; depth++) nested = [nested];
  expect(podTemplateErrors({ spec: { affinity: nested } })).toEqual([
    expect.objectContaining({ code: 'invalid', field: 'spec' }),
  ]);
});
