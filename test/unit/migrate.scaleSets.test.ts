import { DEFAULT_POD_POLICY } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { describe, expect, test } from '@jest/globals';
import {
  POD_METADATA_ROWS,
  POD_SPEC_ROWS,
  POD_TEMPLATE_ROWS,
  RUNNER_CONTAINER_ROWS,
} from '../../cli/migrate/podRows.ts';
import { convertArc } from '../../cli/migrate/convertArc.ts';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { SCALE_SET_ROWS, VALUES_ROWS } from '../../cli/migrate/scaleSetRows.ts';
import {
  convert,
  describeRows,
  notesOf,
  pod,
  runner,
  SAME,
  scaleSet,
  type RowCase,
} from '../support/migratedSets.ts';

/** Template of a set that replaces a scale set of this name. */
const TAKEN_OVER = {
  organization: 'acme',
  labels: ['linux'],
  demand: 'scaleSet',
  scaleSet: { name: 'linux', adopt: true },
};

const COMMON: readonly RowCase[] = [
  ['githubConfigUrl', 'https://github.com/acme', { template: { organization: 'acme' } }],
  ['githubConfigUrl', 'https://github.com/acme/app/', { template: { repository: 'acme/app' } }],
  ['githubConfigUrl', 'https://github.com/enterprises/acme', { template: { enterprise: 'acme' } }],
  [
    'githubConfigUrl',
    'https://ghes.example.com/acme',
    { template: { organization: 'acme' } },
    /apiUrl: https:\/\/ghes\.example\.com\/api\/v3/,
  ],
  [
    'githubConfigUrl',
    'https://acme.ghe.com/acme',
    { template: { organization: 'acme' } },
    /apiUrl: https:\/\/api\.acme\.ghe\.com/,
  ],
  [
    'githubConfigSecret',
    'arc-token',
    { template: { credential: 'arc-token' } },
    /needs a credential of this name/,
  ],
  ['runnerGroup', 'default', SAME],
  ['runnerGroup', 'gpu', { template: { runnerGroup: 'gpu' } }],
  ['runnerScaleSetName', 'arc-linux', { name: 'arc-linux', template: { labels: ['arc-linux'] } }],
  ['minRunners', 2, { minIdle: 2, max: 5 }],
  ['maxRunners', 7, { max: 7 }],
  ['maxRunners', 2_147_483_647, { max: 5_000 }, /was 2147483647/],
  ['maxRunners', undefined, { max: 100 }, /^not set/],
  [
    'proxy',
    { http: { url: 'http://p:1' }, https: { url: 'http://p:2' }, noProxy: ['a', 'b'] },
    {
      template: {
        proxy: { http: { url: 'http://p:1' }, https: { url: 'http://p:2' }, noProxy: ['a', 'b'] },
      },
    },
    /for the runner only: .*\(proxy\)/,
  ],
  [
    'githubServerTLS',
    { certificateFrom: { configMapKeyRef: { name: 'ca', key: 'ca.crt' } } },
    SAME,
    /caFile/,
  ],
  [
    'githubServerTLS',
    {
      certificateFrom: { configMapKeyRef: { name: 'ca', key: 'ca.crt' } },
      runnerMountPath: '/usr/local/share/ca-certificates/',
    },
    { template: { ca: { configMapKeyRef: { name: 'ca', key: 'ca.crt' } } } },
    /for the runner only/,
  ],
  ['listenerTemplate', { spec: {} }, SAME, /reads the scale set itself/],
  ['listenerMetrics', { counters: {} }, SAME, /docs\/configuration\.md/],
];

describeRows(
  'an AutoscalingRunnerSet',
  SCALE_SET_ROWS,
  [
    ...COMMON,
    ['runnerScaleSetLabels', ['gpu', 'linux'], { template: { labels: ['linux', 'gpu'] } }],
    ['vaultConfig', { type: 'azure_key_vault' }, SAME, /Secrets Store CSI/],
    ...[
      'autoscalingListener',
      'listenerServiceAccountMetadata',
      'listenerRoleMetadata',
      'listenerRoleBindingMetadata',
      'listenerConfigSecretMetadata',
      'ephemeralRunnerSetMetadata',
      'ephemeralRunnerMetadata',
      'ephemeralRunnerConfigSecretMetadata',
    ].map((field): RowCase => [field, { labels: {} }, SAME, /only ARC makes/]),
    ['fromTheFuture', 1, SAME, /not known to this command/],
  ],
  (field, value) => [scaleSet({ [field]: value })],
);

describeRows(
  'values of the chart',
  VALUES_ROWS,
  [
    ...COMMON,
    ['githubConfigSecret', { github_token: 'ghp_secret' }, SAME, /type: pat/],
    ['githubConfigSecret', { github_app_id: '1', github_app_private_key: 'k' }, SAME, /type: app/],
    ['scaleSetLabels', ['gpu'], { template: { labels: ['linux', 'gpu'] } }],
    ['keyVault', { type: 'azure_key_vault' }, SAME, /Secrets Store CSI/],
    ['controllerServiceAccount', { name: 'x' }, SAME],
    ['namespaceOverride', 'runners', SAME],
    ...['annotations', 'labels', 'resourceMeta'].map((field): RowCase => [
      field,
      { a: 'b' },
      SAME,
      /only ARC makes/,
    ]),
    ['template', { spec: { nodeName: 'n' } }, pod({ nodeName: 'n' })],
    ['containerMode', { type: '' }, SAME],
    [
      'containerMode',
      { type: 'dind' },
      pod({
        initContainers: [
          { name: 'init-dind-externals', image: GITHUB_RUNNER.image.name },
          {
            name: 'dind',
            image: 'docker:dind',
            restartPolicy: 'Always',
            securityContext: { privileged: true },
          },
        ],
        containers: [
          {
            name: 'runner',
            env: [{ name: 'DOCKER_HOST' }, { name: 'RUNNER_WAIT_FOR_DOCKER_IN_SECONDS' }],
            volumeMounts: [{ name: 'work' }, { name: 'dind-sock' }],
          },
        ],
        volumes: [{ name: 'work' }, { name: 'dind-sock' }, { name: 'dind-externals' }],
      }),
      /privileged: true/,
    ],
    [
      'containerMode',
      {
        type: 'kubernetes',
        kubernetesModeWorkVolumeClaim: { storageClassName: 'fast' },
        kubernetesModeAdditionalRoleRules: [{}],
      },
      {
        paused: true,
        ...pod({
          automountServiceAccountToken: true,
          containers: [
            {
              env: [
                { name: 'ACTIONS_RUNNER_CONTAINER_HOOKS', value: '/home/runner/k8s/index.js' },
                { name: 'ACTIONS_RUNNER_POD_NAME' },
                { name: 'ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER', value: 'true' },
              ],
            },
          ],
          volumes: [
            {
              name: 'work',
              ephemeral: { volumeClaimTemplate: { spec: { storageClassName: 'fast' } } },
            },
          ],
        }),
      },
      /DECIDE no service account is named/,
    ],
    [
      'containerMode',
      { type: 'kubernetes-novolume' },
      runner({
        env: [
          { value: '/home/runner/k8s-novolume/index.js' },
          {},
          {},
          { name: 'ACTIONS_RUNNER_IMAGE', value: GITHUB_RUNNER.image.name },
        ],
      }),
      /which go when their runner's pod goes/,
    ],
  ],
  (field, value) => [{ githubConfigUrl: 'https://github.com/acme', maxRunners: 5, [field]: value }],
);

describeRows(
  "a pod's spec",
  POD_SPEC_ROWS,
  [
    [
      'containers',
      [
        { name: 'runner', resources: { limits: { cpu: '1' } } },
        { name: 'cache', image: 'c' },
      ],
      pod({
        containers: [
          { name: 'runner', resources: { limits: { cpu: '1' } } },
          { name: 'cache', image: 'c' },
        ],
      }),
    ],
    [
      'initContainers',
      [{ name: 'first', image: 'i' }],
      pod({ initContainers: [{ name: 'first', image: 'i' }] }),
    ],
    ['volumes', [{ name: 'v', emptyDir: {} }], pod({ volumes: [{ name: 'v', emptyDir: {} }] })],
    ['restartPolicy', 'Never', SAME],
    ['restartPolicy', 'OnFailure', SAME, /always Never/],
    [
      'terminationGracePeriodSeconds',
      60,
      { template: { stop: { signalTimeout: '55s' } } },
      /60 s, of which 5 s are stop\.cleanupTimeout/,
    ],
    ['terminationGracePeriodSeconds', 0, SAME, /0 s, left out/],
    ['activeDeadlineSeconds', 60, SAME, /timeouts\.jobTimeout/],
    [
      'serviceAccountName',
      'builder',
      pod({ serviceAccountName: 'builder', automountServiceAccountToken: true }),
      /serviceAccounts: \["builder"\]/,
    ],
    ['ephemeralContainers', [{ name: 'e' }], SAME, /takes none when a pod is made/],
    [
      'nodeSelector',
      { 'kubernetes.io/os': 'windows' },
      { paused: true, ...pod({ nodeSelector: { 'kubernetes.io/os': 'windows' } }) },
      /DECIDE Holdfast has no runners on Windows/,
    ],
    ['os', { name: 'windows' }, { paused: true }, /DECIDE Holdfast has no runners on Windows/],
    ['nodeSelector', { gpu: 'yes' }, pod({ nodeSelector: { gpu: 'yes' } })],
  ],
  (field, value) => [scaleSet({ template: { spec: { [field]: value } } })],
);

describeRows(
  "a pod's metadata",
  { ...POD_METADATA_ROWS, ...POD_TEMPLATE_ROWS },
  [
    [
      'labels',
      { a: 'b', 'holdfast.dev/set': 'x' },
      { template: { pod: { metadata: { labels: { a: 'b' } } } } },
      /"holdfast\.dev\/set" is left out/,
    ],
    [
      'labels',
      { a: 'b', 'actions-runner': '' },
      { template: { pod: { metadata: { labels: { a: 'b' } } } } },
      /"actions-runner" is left out: by it ARC would take the pod/,
    ],
    ['annotations', { a: 'b' }, { template: { pod: { metadata: { annotations: { a: 'b' } } } } }],
    ['creationTimestamp', '2026-01-01T00:00:00Z', SAME],
    ['name', 'fixed', SAME, /labels and annotations/],
  ],
  (field, value) => [scaleSet({ template: { metadata: { [field]: value } } })],
  ['metadata', 'spec'],
);

describeRows(
  "the runner's container",
  RUNNER_CONTAINER_ROWS,
  [
    ['name', 'runner', SAME],
    ['image', 'acme/runner:1', { template: { image: 'acme/runner:1' } }, /brings its own start/],
    ['image', 'ghcr.io/actions/actions-runner:latest', SAME, /pinned \(HOLDFAST_RUNNER_IMAGE\)/],
    ['command', ['/run'], { template: { command: ['/run'] } }],
    ['args', ['-v'], { template: { args: ['-v'] } }],
    [
      'env',
      [
        { name: 'A', value: 'b' },
        { name: 'RUNNER_NAME', value: 'x' },
      ],
      runner({ env: [{ name: 'A', value: 'b' }] }),
      /"RUNNER_NAME" is left out/,
    ],
    [
      'volumeMounts',
      [{ name: 'v', mountPath: '/v' }],
      runner({ volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
    ],
    [
      'lifecycle',
      { postStart: { exec: { command: ['x'] } } },
      runner({ lifecycle: { postStart: { exec: { command: ['x'] } } } }),
    ],
    ['startupProbe', { exec: {} }, SAME, /Holdfast's own probes/],
    ['readinessProbe', { exec: {} }, SAME, /Holdfast's own probes/],
    [
      'resources',
      { limits: { memory: '1Gi' } },
      runner({ resources: { limits: { memory: '1Gi' } } }),
    ],
  ],
  (field, value) => [
    scaleSet({ template: { spec: { containers: [{ name: 'runner', [field]: value }] } } }),
  ],
);

test.each(['preStop', 'stopSignal'])(
  "the runner's %s is left out, and says what there is instead",
  (hook) => {
    const set = convert(
      scaleSet({
        template: { spec: { containers: [{ name: 'runner', lifecycle: { [hook]: 'x' } }] } },
      }),
    );
    expect(JSON.stringify(set.input)).not.toContain(hook);
    expect(notesOf(set, hook)).toEqual([expect.stringMatching(/stop\.signals/)]);
  },
);

describe("the service account that ARC's chart created", () => {
  const spec = { template: { spec: { serviceAccountName: 'of-chart' } } };

  test('without permissions is omitted', () => {
    const set = convert(
      scaleSet(spec, {
        'actions.github.com/cleanup-no-permission-service-account-name': 'of-chart',
      }),
    );
    expect(set.input.template).toEqual(TAKEN_OVER);
    expect(set.notes).toEqual([]);
  });

  test('for jobs in separate pods must be created', () => {
    const set = convert(
      scaleSet(spec, {
        'actions.github.com/cleanup-kubernetes-mode-service-account-name': 'of-chart',
      }),
    );
    expect(set.input).toMatchObject({
      paused: true,
      ...pod({ automountServiceAccountToken: true }),
    });
    expect(notesOf(set, 'serviceAccountName')).toEqual([
      expect.stringMatching(/DECIDE "of-chart" is of the chart/),
    ]);
  });
});

test.each<[podPolicy: object, spec: object]>([
  [{}, { nodeSelector: { 'kubernetes.io/arch': 'arm64' } }],
  [{ nodeSelectors: [...DEFAULT_POD_POLICY.nodeSelectors, 'a=b'] }, { nodeSelector: { a: 'b' } }],
  [
    { tolerations: ['nvidia.com/gpu=*'], resources: { 'nvidia.com/gpu': '2' } },
    {
      tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
      containers: [{ name: 'runner', resources: { limits: { 'nvidia.com/gpu': '2' } } }],
    },
  ],
  [{ fields: ['affinity'] }, { affinity: { podAntiAffinity: {} } }],
  [{ serviceAccounts: ['builder'] }, { serviceAccountName: 'builder' }],
  [{ hostPaths: ['/data'] }, { volumes: [{ name: 'v', hostPath: { path: '/data' } }] }],
  [{ secrets: ['s'] }, { volumes: [{ name: 'v', secret: { secretName: 's' } }] }],
  [{ host: ['network'] }, { hostNetwork: true }],
  [
    { capabilities: ['NET_ADMIN'], privileged: true },
    {
      containers: [
        {
          name: 'runner',
          securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } },
        },
      ],
    },
  ],
  [
    { volumes: [...DEFAULT_POD_POLICY.volumes, 'nfs'] },
    { volumes: [{ name: 'v', nfs: { server: 's', path: '/' } }] },
  ],
])('the pod policy must allow %j for %j', (podPolicy, spec) => {
  const set = convert(scaleSet({ template: { spec } }));
  expect(set.podPolicy).toEqual(podPolicy);
  expect(set.policy.toSorted()).toEqual(Object.keys(podPolicy).toSorted());
});

test('user and password of a proxy stay in their Secret', () => {
  const set = convert(
    scaleSet({ proxy: { https: { url: 'http://p:2', credentialSecretRef: 'auth' } } }),
  );
  expect(set.input.template.proxy).toEqual({
    https: { url: 'http://p:2', credentialSecretRef: 'auth' },
  });
  expect(set.policy).toContain('secrets');
  expect(notesOf(set, 'credentialSecretRef')).toEqual([expect.stringMatching(/"auth".*%40/)]);
});

test("a runner's container with only default fields is omitted", () => {
  const set = convert(
    scaleSet({
      template: {
        spec: {
          restartPolicy: 'Never',
          containers: [
            {
              name: 'runner',
              image: 'ghcr.io/actions/actions-runner:latest',
              command: ['/home/runner/run.sh'],
            },
          ],
        },
      },
    }),
  );
  expect(set.input.template).toEqual(TAKEN_OVER);
});

test("the files that the daemon's container copies from the image match the runner's version", () => {
  const image = 'ghcr.io/actions/actions-runner:latest';
  const set = convert(
    scaleSet({
      template: {
        spec: {
          containers: [{ name: 'runner', image, command: ['/home/runner/run.sh'] }],
          initContainers: [{ name: 'init-dind-externals', image }],
        },
      },
    }),
  );
  expect(set.input.template).toMatchObject({ image, command: ['/home/runner/run.sh'] });
});

test('an empty command is treated as absent', () => {
  const set = convert(
    scaleSet({
      template: {
        spec: { containers: [{ name: 'runner', image: 'mine:1', command: [], args: [] }] },
      },
    }),
  );
  expect(set.input.template).toMatchObject({ image: 'mine:1' });
  expect(set.input.template).not.toHaveProperty('command');
  expect(set.input.template).not.toHaveProperty('args');
});

test("a kind of another API group than ARC's is skipped, and the message names its group", () => {
  const { sets, skipped } = convertArc(
    [
      {
        source: 'f',
        value: {
          apiVersion: 'actions.github.com/v1alpha1',
          kind: 'RunnerSet',
          metadata: { name: 'x' },
        },
      },
    ],
    { now: 0 },
  );
  expect(sets).toEqual([]);
  expect(skipped).toMatchObject([{ reason: expect.stringContaining('actions.summerwind.dev') }]);
});
