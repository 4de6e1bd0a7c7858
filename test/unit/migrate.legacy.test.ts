import { describe, expect, test } from '@jest/globals';
import type { V1PodSpec } from '@kubernetes/client-node';
import {
  RUNNER_CONFIG_ROWS,
  RUNNER_DEPLOYMENT_ROWS,
  RUNNER_POD_ROWS,
  RUNNER_SET_ROWS,
} from '../../cli/migrate/legacyRows.ts';
import { POD_SPEC_ROWS } from '../../cli/migrate/podRows.ts';
import type { MigratedSet } from '../../cli/migrate/convertArc.ts';
import {
  convert,
  deployment,
  describeRows,
  legacy,
  notesOf,
  pod,
  runner,
  SAME,
  type Fields,
  type RowCase,
} from '../support/migratedSets.ts';

const runnerSet = (spec: Fields): Fields =>
  legacy('RunnerSet', { organization: 'acme', dockerEnabled: false, ...spec });

const RUNNER_CONFIG: readonly RowCase[] = [
  ['labels', ['gpu', 'self-hosted'], { template: { labels: ['self-hosted', 'gpu'] } }],
  [
    'labels',
    ['docker,openshift', 'x'],
    { template: { labels: ['self-hosted', 'docker', 'openshift', 'x'] } },
    /a label with commas is several/,
  ],
  ['group', 'Default', SAME],
  ['group', 'gpu', { template: { runnerGroup: 'gpu' } }],
  ['ephemeral', false, { template: { ephemeral: false } }],
  ['ephemeral', true, SAME],
  [
    'image',
    'summerwind/actions-runner-dind-rootless:v2.310.2-ubuntu-22.04',
    SAME,
    /The worker's own is used/,
  ],
  ['image', 'summerwind/actions-runner-dind:latest', SAME, /register themselves with a token/],
  [
    'image',
    'acme/runner:1',
    { paused: true },
    /DECIDE "acme\/runner:1" is left out.*runner\.Dockerfile/,
  ],
  ['workDir', '/work', SAME, /\/home\/runner\/_work/],
  [
    'githubAPICredentialsFrom',
    { secretRef: { name: 'org2' } },
    { template: { credential: 'org2' } },
  ],
];
/** Fields that depend on others, with separate tests below. */
const TOGETHER = [
  'dockerEnabled',
  'dockerdWithinRunnerContainer',
  'dockerMTU',
  'dockerRegistryMirror',
  'dockerVarRunVolumeSizeLimit',
  'volumeSizeLimit',
  'volumeStorageMedium',
  'containerMode',
  'workVolumeClaimTemplate',
  'dockerdContainerResources',
  'dockerEnv',
  'dockerVolumeMounts',
];

describeRows(
  'the configuration of a runner',
  RUNNER_CONFIG_ROWS,
  RUNNER_CONFIG,
  (field, value) => [deployment({ [field]: value })],
  [...TOGETHER, 'organization', 'repository', 'enterprise'],
);

test.each(['organization', 'repository', 'enterprise'])('%s', (scope) => {
  const name = scope === 'repository' ? 'acme/app' : 'acme';
  expect(
    convert(
      legacy('RunnerDeployment', { template: { spec: { [scope]: name, dockerEnabled: false } } }),
    ).input.template,
  ).toEqual({ [scope]: name, labels: ['self-hosted'] });
});

describeRows(
  'the pod of a runner',
  RUNNER_POD_ROWS,
  [
    [
      'sidecarContainers',
      [{ name: 'cache', image: 'c' }],
      pod({ containers: [{ name: 'cache', image: 'c' }] }),
    ],
    [
      'env',
      [
        { name: 'DISABLE_RUNNER_UPDATE', value: 'true' },
        { name: 'A', value: 'b' },
      ],
      runner({ env: [{ name: 'A', value: 'b' }] }),
      /DISABLE_RUNNER_UPDATE is left out: only the entry point of ARC's images reads it. In its place: disableUpdate/,
    ],
    ['env', [{ name: 'A', value: 'b' }], runner({ env: [{ name: 'A', value: 'b' }] })],
    [
      'envFrom',
      [{ secretRef: { name: 's' } }],
      runner({ envFrom: [{ secretRef: { name: 's' } }] }),
    ],
    ['resources', { limits: { cpu: '1' } }, runner({ resources: { limits: { cpu: '1' } } })],
    ['imagePullPolicy', 'Always', runner({ imagePullPolicy: 'Always' })],
    [
      'volumeMounts',
      [{ name: 'v', mountPath: '/v' }],
      runner({ volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
    ],
    [
      'volumeMounts',
      [{ name: 'v', mountPath: '/runner/_work' }],
      runner({ volumeMounts: [{ name: 'v', mountPath: '/home/runner/_work' }] }),
      /is \/home\/runner in GitHub's/,
    ],
    [
      'containers',
      [
        { name: 'runner', tty: true, image: 'acme/runner:1' },
        { name: 'docker' },
        { name: 'other', image: 'o' },
      ],
      { paused: true, ...pod({ containers: [{ name: 'runner', tty: true }, { name: 'other' }] }) },
    ],
    [
      'serviceAccountName',
      'builder',
      pod({ serviceAccountName: 'builder', automountServiceAccountToken: true }),
      /serviceAccounts: \["builder"\]/,
    ],
    ['priorityClassName', 'high', pod({ priorityClassName: 'high' })],
  ],
  (field, value) => [deployment({ [field]: value })],
  [...Object.keys(POD_SPEC_ROWS), ...TOGETHER],
);

describeRows(
  'a RunnerDeployment',
  RUNNER_DEPLOYMENT_ROWS,
  [
    ['replicas', 3, { replicas: 3 }],
    ['replicas', undefined, { replicas: 1 }],
    ['effectiveTime', '2026-01-01T00:00:00Z', SAME],
    ['selector', { matchLabels: {} }, SAME],
  ],
  (field, value) => [deployment({}, { [field]: value })],
  ['template'],
);

describeRows(
  'a RunnerSet',
  RUNNER_SET_ROWS,
  [
    ...RUNNER_CONFIG,
    ['replicas', 2, { replicas: 2 }],
    ...[
      'effectiveTime',
      'selector',
      'serviceName',
      'podManagementPolicy',
      'revisionHistoryLimit',
      'minReadySeconds',
      'ordinals',
    ].map((field): RowCase => [field, 'x', SAME]),
    ['updateStrategy', { type: 'OnDelete' }, SAME, /rollout\.maxSurge/],
    ['persistentVolumeClaimRetentionPolicy', { whenDeleted: 'Delete' }, SAME, /never deleted/],
    ['serviceAccountName', 'builder', pod({ serviceAccountName: 'builder' }), /pod policy/],
    [
      'template',
      {
        metadata: { labels: { a: 'b' } },
        spec: { nodeName: 'n', containers: [{ name: 'runner', tty: true }] },
      },
      {
        template: {
          pod: {
            metadata: { labels: { a: 'b' } },
            spec: { nodeName: 'n', containers: [{ tty: true }] },
          },
        },
      },
    ],
  ],
  (field, value) => [runnerSet({ [field]: value })],
  [...TOGETHER, 'organization', 'repository', 'enterprise', 'volumeClaimTemplates'],
);

test('a Runner becomes a set of one runner, and a RunnerReplicaSet is treated like a RunnerDeployment', () => {
  expect(
    convert(
      legacy('Runner', { repository: 'acme/app', dockerEnabled: false, nodeSelector: { a: 'b' } }),
    ).input,
  ).toEqual({
    name: 'linux',
    replicas: 1,
    template: {
      repository: 'acme/app',
      labels: ['self-hosted'],
      pod: { spec: { nodeSelector: { a: 'b' } } },
    },
  });
  expect(
    convert(
      legacy('RunnerReplicaSet', {
        replicas: 4,
        template: { spec: { organization: 'acme', dockerEnabled: false } },
      }),
    ).input,
  ).toEqual({
    name: 'linux',
    replicas: 4,
    template: { organization: 'acme', labels: ['self-hosted'] },
  });
});

describe('the Docker daemon of a runner', () => {
  const daemonOf = (spec: Fields): Fields | undefined => {
    const init = convert(deployment({ dockerEnabled: undefined, ...spec })).input.template.pod
      ?.spec?.['initContainers'] as Fields[] | undefined;
    return init?.find(({ name }) => name === 'dind');
  };

  test('is added unless it is disabled, even if it ran in the runner container', () => {
    expect(daemonOf({})).toMatchObject({
      image: 'docker:dind',
      securityContext: { privileged: true },
      restartPolicy: 'Always',
    });
    expect(daemonOf({ dockerEnabled: false })).toBeUndefined();
    expect(daemonOf({ dockerEnabled: false, dockerdWithinRunnerContainer: true })).toBeDefined();
    expect(notesOf(convert(deployment({ dockerEnabled: true })), 'dockerEnabled')).toEqual([
      expect.stringMatching(/If no job needs Docker/),
    ]);
  });

  test('keeps its settings', () => {
    const resources = { limits: { cpu: '2' } };
    expect(
      daemonOf({
        dockerMTU: 1400,
        dockerRegistryMirror: 'https://mirror/',
        dockerEnv: [
          { name: 'A', value: 'b' },
          { name: 'RUNNER_GRACEFUL_STOP_TIMEOUT', value: '9' },
        ],
        dockerVolumeMounts: [{ name: 'v', mountPath: '/v' }],
        dockerdContainerResources: resources,
      }),
    ).toMatchObject({
      args: [
        'dockerd',
        '--host=unix:///var/run/docker.sock',
        '--group=$(DOCKER_GROUP_GID)',
        '--mtu',
        '1400',
        '--registry-mirror=https://mirror/',
      ],
      env: [{ name: 'DOCKER_GROUP_GID' }, { name: 'A', value: 'b' }],
      volumeMounts: [
        { name: 'work' },
        { name: 'dind-sock' },
        { name: 'dind-externals' },
        { name: 'v', mountPath: '/v' },
      ],
      resources,
    });
    const all = {
      dockerdWithinRunnerContainer: true,
      dockerMTU: 1400,
      dockerRegistryMirror: 'https://mirror/',
      dockerVarRunVolumeSizeLimit: '50M',
      volumeSizeLimit: '4Gi',
      volumeStorageMedium: 'Memory',
      dockerEnv: [{ name: 'A', value: 'b' }],
      dockerVolumeMounts: [{ name: 'v', mountPath: '/v' }],
      dockerdContainerResources: { limits: { cpu: '1' } },
    };
    expect(
      Object.keys(
        convert(deployment({ dockerEnabled: true, ...all })).input.template.pod?.spec ?? {},
      ),
    ).toEqual(['initContainers', 'containers', 'volumes']);
    expect(
      daemonOf({
        containers: [{ name: 'docker', image: 'docker:27-dind', env: [{ name: 'A', value: 'b' }] }],
      }),
    ).toMatchObject({ name: 'dind', image: 'docker:27-dind', env: [{}, { name: 'A' }] });
  });

  test('its socket and the work folder keep their size limits', () => {
    const set = convert(
      deployment({
        dockerEnabled: true,
        dockerVarRunVolumeSizeLimit: '50M',
        volumeSizeLimit: '4Gi',
        volumeStorageMedium: 'Memory',
      }),
    );
    expect(set.input.template.pod?.spec?.['volumes']).toEqual([
      { name: 'work', emptyDir: { sizeLimit: '4Gi', medium: 'Memory' } },
      { name: 'dind-sock', emptyDir: { medium: 'Memory', sizeLimit: '50M' } },
      { name: 'dind-externals', emptyDir: {} },
    ]);
  });

  test('is not added if jobs run in separate pods', () => {
    const set = convert(
      deployment({
        dockerEnabled: true,
        containerMode: 'kubernetes',
        serviceAccountName: 'hooks',
        workVolumeClaimTemplate: { storageClassName: 'fast' },
      }),
    );
    expect(set.input).toMatchObject(
      pod({
        serviceAccountName: 'hooks',
        volumes: [
          {
            name: 'work',
            ephemeral: { volumeClaimTemplate: { spec: { storageClassName: 'fast' } } },
          },
        ],
      }),
    );
    expect(set.input.paused).toBeUndefined();
    expect(Object.keys(set.input.template.pod?.spec ?? {}).toSorted()).toEqual([
      'automountServiceAccountToken',
      'containers',
      'serviceAccountName',
      'volumes',
    ]);
  });
});

describe('RUNNER_GRACEFUL_STOP_TIMEOUT', () => {
  const stopOf = (spec: Fields): object => {
    const { onTerm, stop } = convert(deployment(spec)).input.template;
    return { onTerm, stop };
  };
  const env = [{ name: 'RUNNER_GRACEFUL_STOP_TIMEOUT', value: '90' }];

  test('is the time for the job after SIGTERM; the stop signal gets the rest of the grace period', () => {
    expect(stopOf({ env, terminationGracePeriodSeconds: 110 })).toEqual({
      onTerm: 'drain',
      stop: { drainTimeout: '90s', signalTimeout: '15s' },
    });
    expect(stopOf({ terminationGracePeriodSeconds: 110, env })).toEqual({
      onTerm: 'drain',
      stop: { drainTimeout: '90s', signalTimeout: '15s' },
    });
  });

  test('without a longer grace period of the pod uses the default', () => {
    expect(stopOf({ env })).toEqual({ onTerm: 'drain', stop: { drainTimeout: '90s' } });
    expect(stopOf({ env, terminationGracePeriodSeconds: 30 })).toEqual({
      onTerm: 'drain',
      stop: { drainTimeout: '90s' },
    });
  });
});

const podSpecOf = ({ template }: MigratedSet['input']): V1PodSpec =>
  ({ containers: [], ...template.pod?.spec }) as V1PodSpec;

describe('the claims of a RunnerSet', () => {
  const claim = (name: string, spec: Fields = {}): Fields => ({
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } }, ...spec },
  });
  const set = (claims: Fields[], volumeMounts: Fields[]): MigratedSet =>
    convert(
      runnerSet({
        volumeClaimTemplates: claims,
        template: { spec: { containers: [{ name: 'runner', volumeMounts }] } },
      }),
    );

  test('become claims of slots', () => {
    const migrated = set(
      [claim('cache', { storageClassName: 'fast' })],
      [
        { name: 'cache', mountPath: '/cache' },
        { name: 'other', mountPath: '/o' },
      ],
    );
    expect(migrated.input.template.volumeClaims).toEqual([
      {
        name: 'cache',
        mountPath: '/cache',
        claim: 'linux-cache',
        storage: '10Gi',
        storageClass: 'fast',
        accessModes: ['ReadWriteOnce'],
      },
    ]);
    expect(migrated.input).toMatchObject(
      runner({ volumeMounts: [{ name: 'other', mountPath: '/o' }] }),
    );
    expect(notesOf(migrated, 'volumeClaimTemplates')).toEqual([
      expect.stringMatching(/starts empty/),
    ]);
  });

  test('that only the Docker daemon mounts become ephemeral volumes of the pod', () => {
    const { input } = convert(
      legacy('RunnerSet', {
        organization: 'acme',
        volumeClaimTemplates: [claim('var-lib-docker')],
        template: {
          spec: {
            containers: [
              {
                name: 'docker',
                volumeMounts: [{ name: 'var-lib-docker', mountPath: '/var/lib/docker' }],
              },
            ],
          },
        },
      }),
    );
    expect(input.template.volumeClaims).toBeUndefined();
    const { initContainers = [], volumes = [] } = podSpecOf(input);
    expect(volumes.find(({ name }) => name === 'var-lib-docker')).toMatchObject({
      ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'] } } },
    });
    expect(initContainers.find(({ name }) => name === 'dind')?.volumeMounts).toContainEqual({
      name: 'var-lib-docker',
      mountPath: '/var/lib/docker',
    });
  });

  test('a volume at the work folder replaces the default one', () => {
    const { input } = convert(
      legacy('RunnerDeployment', {
        template: {
          spec: {
            organization: 'acme',
            volumes: [{ name: 'fast', emptyDir: {} }],
            volumeMounts: [{ name: 'fast', mountPath: '/runner/_work' }],
          },
        },
      }),
    );
    const { containers, initContainers, volumes } = podSpecOf(input);
    const paths = containers[0]?.volumeMounts?.map(({ mountPath }) => mountPath) ?? [];
    expect(paths.filter((path) => path === '/home/runner/_work')).toHaveLength(1);
    expect(initContainers?.find(({ name }) => name === 'dind')?.volumeMounts).toContainEqual({
      name: 'fast',
      mountPath: '/home/runner/_work',
    });
    expect(volumes?.map(({ name }) => name)).not.toContain('work');
  });

  test('keep their data source and selector', () => {
    const more = {
      dataSource: { kind: 'PersistentVolumeClaim', name: 'seed' },
      selector: { matchLabels: { disk: 'nvme' } },
    };
    const { input } = set(
      [{ ...claim('cache', more), metadata: { name: 'cache', annotations: { a: 'b' } } }],
      [{ name: 'cache', mountPath: '/cache' }],
    );
    expect(input.template.volumeClaims).toMatchObject([
      { name: 'cache', ...more, annotations: { a: 'b' } },
    ]);
  });

  test('unsupported fields of a claim cause a note', () => {
    const migrated = set(
      [claim('unused'), claim('parts', { volumeName: 'pv-1' })],
      [
        { name: 'parts', mountPath: '/a', subPath: 'a' },
        { name: 'parts', mountPath: '/b', subPath: 'b' },
      ],
    );
    expect(migrated.input.template.volumeClaims).toMatchObject([
      { name: 'parts', mountPath: '/a' },
    ]);
    expect(notesOf(migrated, '[0]')).toEqual([expect.stringMatching(/left out: no container/)]);
    expect(notesOf(migrated, '[1]')).toEqual([expect.stringMatching(/mounted once/)]);
    expect(notesOf(migrated, 'volumeName')).toEqual([expect.stringMatching(/left out/)]);
  });
});
