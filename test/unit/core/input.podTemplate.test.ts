import { describe, expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { isReservedEnv } from '../../../core/domain/podTemplate.ts';
import { podTemplateErrors } from '../../../core/input/podTemplate.ts';

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
      'metadata.labels: holdfast.dev/installation is set by Holdfast',
    ],
    [
      'the managed-by label',
      { metadata: { labels: { 'app.kubernetes.io/managed-by': 'helm' } } },
      'metadata.labels: app.kubernetes.io/managed-by is set',
    ],
    [
      "a label of ARC's",
      { metadata: { labels: { 'runner-deployment-name': 'linux' } } },
      'metadata.labels: by runner-deployment-name actions-runner-controller would take the pod for its own',
    ],
    [
      'a reserved annotation',
      { metadata: { annotations: { 'holdfast.dev/probes': 'true' } } },
      'metadata.annotations: holdfast.dev/probes is set by Holdfast',
    ],
    [
      'another restart policy',
      { spec: { restartPolicy: 'OnFailure' } },
      'spec.restartPolicy: must be Never',
    ],
    [
      'an active deadline',
      { spec: { activeDeadlineSeconds: 5 } },
      'spec.activeDeadlineSeconds: it starts before',
    ],
    [
      'a grace period',
      { spec: { terminationGracePeriodSeconds: 5 } },
      'spec.terminationGracePeriodSeconds: it is derived from stop.',
    ],
    ['containers of a wrong type', { spec: { containers: {} } }, 'spec.containers: must be a list'],
    [
      'a container without a name',
      { spec: { containers: [{ image: 'x' }] } },
      'spec.containers[0]: needs a name',
    ],
    [
      'two containers of one name',
      { spec: { containers: [{ name: 'a' }], initContainers: [{ name: 'a' }] } },
      'spec.initContainers[0]: a second container called a',
    ],
    [
      'an init container called runner',
      { spec: { initContainers: [{ name: 'runner' }] } },
      'spec.initContainers[0]: the name runner is kept',
    ],
    [
      'a container called as the registration',
      { spec: { containers: [{ name: 'holdfast-register' }] } },
      'spec.containers[0]: the name holdfast-register is kept for the registration',
    ],
    [
      'a registration that does not end',
      { spec: { initContainers: [{ name: 'holdfast-register', restartPolicy: 'Always' }] } },
      'spec.initContainers[0].restartPolicy: the runner starts when',
    ],
    [
      "a variable of ours in the registration's container",
      {
        spec: { initContainers: [{ name: 'holdfast-register', env: [{ name: 'RUNNER_TOKEN' }] }] },
      },
      'spec.initContainers[0].env[0]: RUNNER_TOKEN is set by Holdfast',
    ],
    [
      'two volumes of one name',
      { spec: { volumes: [{ name: 'a' }, { name: 'a' }] } },
      'spec.volumes[1]: a second volume called a',
    ],
    [
      'a reserved volume',
      { spec: { volumes: [{ name: 'holdfast-supervisor' }] } },
      'spec.volumes[0]: volumes called holdfast-*',
    ],
    [
      'a mount of a reserved volume',
      runner({ volumeMounts: [{ name: 'holdfast-supervisor', mountPath: '/x' }] }),
      'spec.containers[0].volumeMounts[0]: volumes called',
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
      'spec.initContainers[0].volumeMounts[0]: volumes called',
    ],
    [
      'RUNNER_NAME',
      runner({ env: [{ name: 'RUNNER_NAME', value: 'x' }] }),
      'spec.containers[0].env[0]: RUNNER_NAME is set by Holdfast',
    ],
    [
      'the JIT config',
      runner({ env: [{ name: 'A' }, { name: 'ACTIONS_RUNNER_INPUT_JITCONFIG' }] }),
      'spec.containers[0].env[1]: ACTIONS_RUNNER_INPUT_JITCONFIG is set',
    ],
    [
      'a preStop hook',
      runner({ lifecycle: { preStop: { sleep: { seconds: 20 } } } }),
      "spec.containers[0].lifecycle.preStop: its time is taken out of the pod's grace",
    ],
    [
      'a stop signal',
      runner({ lifecycle: { stopSignal: 'SIGUSR1' } }),
      'spec.containers[0].lifecycle.stopSignal: what SIGTERM means',
    ],
    [
      'a termination message in our folders',
      runner({ terminationMessagePath: '/holdfast/message' }),
      'spec.containers[0].terminationMessagePath: /holdfast/message is in a folder',
    ],
    [
      'a variable given twice',
      runner({ env: [{ name: 'A' }, { name: 'A' }] }),
      'spec.containers[0].env[1]: a second variable called A',
    ],
  ])('%s', (_, template, expected) => {
    const errors = podTemplateErrors(template);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain(expected);
  });

  test('all faults are told at once', () => {
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

test('a template is not nested without an end', () => {
  let nested: unknown = 'deep';
  for (let depth = 0; depth < 100_000; depth++) nested = [nested];
  expect(podTemplateErrors({ spec: { affinity: nested } })).toEqual([
    expect.stringMatching(/^spec: is nested more than 100 levels deep/),
  ]);
});
