/** Inputs as people write them, with about every field. */
const POD = {
  metadata: {
    labels: { team: 'web' },
    annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
  },
  spec: {
    serviceAccountName: 'default',
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'ci', operator: 'Exists' }],
    imagePullSecrets: [{ name: 'ci-pull' }],
    securityContext: { fsGroup: 1000, sysctls: [{ name: 'kernel.shm_rmid_forced', value: '0' }] },
    runtimeClassName: 'gvisor',
    hostNetwork: false,
    initContainers: [
      {
        name: 'prepare',
        image: 'busybox:1',
        command: ['true'],
        resources: { limits: { cpu: '500m', memory: '64Mi' } },
      },
    ],
    containers: [
      {
        name: 'runner',
        image: 'ghcr.io/acme/runner:1',
        env: [
          { name: 'A', value: 'b' },
          { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'ci-token', key: 'token' } } },
        ],
        envFrom: [{ secretRef: { name: 'ci-env' } }],
        ports: [{ containerPort: 80, hostPort: 8080 }],
        securityContext: {
          privileged: false,
          capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
          seccompProfile: { type: 'RuntimeDefault' },
        },
        resources: {
          requests: { cpu: '1' },
          limits: { cpu: '2', memory: '1.5Gi', 'ephemeral-storage': '10G' },
        },
        volumeMounts: [{ name: 'cache', mountPath: '/cache' }],
        lifecycle: { postStart: { exec: { command: ['true'] } } },
      },
      { name: 'dind', image: 'docker:27-dind' },
    ],
    volumes: [
      { name: 'cache', persistentVolumeClaim: { claimName: 'cache-1' } },
      { name: 'host', hostPath: { path: '/var/cache/ci' } },
      {
        name: 'all',
        projected: {
          sources: [{ secret: { name: 'ci-a' } }, { serviceAccountToken: { path: 'token' } }],
        },
      },
      { name: 'secret', secret: { secretName: 'ci-b' } },
    ],
  },
};

export const RUNNER_EXAMPLES: readonly object[] = [
  { repository: 'acme/app', labels: ['self-hosted', 'linux'] },
  {
    enterprise: 'big',
    credential: 'prod',
    runnerGroupId: '7',
    name: 'e-1',
    ephemeral: false,
    set: 'linux',
    namespace: 'ci',
  },
  {
    organization: 'acme',
    image: 'ghcr.io/acme/runner:1',
    command: ['./run.sh'],
    args: ['--once'],
    env: { RUNNER_TOOL_CACHE: '/opt/tools' },
    runnerGroup: 'GPU pool',
    ephemeral: false,
    disableUpdate: false,
    proxy: {
      http: { url: 'http://proxy:3128' },
      https: { url: 'http://[fd00::1]:3128/', credentialSecretRef: 'ci-proxy' },
      noProxy: ['.acme.com', 'localhost'],
    },
    ca: { configMapKeyRef: { name: 'acme-ca', key: 'ca.crt' } },
    pod: POD,
    supervisor: 'inject',
    volumeClaims: [
      {
        name: 'work',
        mountPath: '/work',
        storage: '10Gi',
        storageClass: 'fast',
        accessModes: ['ReadWriteOnce'],
        dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' },
        selector: { matchLabels: { disk: 'nvme' } },
        annotations: { 'example.com/a': 'b' },
      },
      { name: 'shared', mountPath: '/shared', claim: 'cache-shared' },
    ],
    timeouts: { registration: '5m', jobTimeout: '2h', idle: '10m', podPending: '10m' },
    stop: {
      drainTimeout: '10m',
      signalTimeout: '30s',
      cleanupTimeout: '15s',
      signals: 'SIGINT,SIGTERM@5s',
      to: 'process',
      cleanupCommand: ['./clean.sh'],
    },
    onTerm: 'drain',
    onEviction: 'replace',
    intervals: { busyRetry: '1m', idleConfirmation: '3s' },
  },
  {
    ciServer: 'none',
    image: 'example.com/train:3',
    command: ['./train.sh'],
    onTerm: 'checkpoint',
    onEviction: 'resume',
    maxAttempts: 3,
    volumeClaims: [{ name: 'state', mountPath: '/state', storage: '10Gi' }],
    stop: { gracePeriod: '15s' },
  },
];

export const SET_EXAMPLES: readonly object[] = [
  { name: 'linux', replicas: 3, template: RUNNER_EXAMPLES[0] },
  {
    name: 'jobEvents',
    minIdle: 1,
    max: 20,
    template: { organization: 'acme', labels: ['linux', 'x64'], pod: POD },
    scaleDownDelay: '10m',
    minReady: '30s',
    recreationGuard: '0s',
    queueCheck: '1m',
    schedules: [
      { cron: '0 8 * * 1-5', timeZone: 'Europe/Berlin', duration: '10h', minIdle: 5, max: 50 },
    ],
    limits: {
      perRepository: 5,
      repositories: [{ repositories: ['acme/*'], max: 10 }],
      maxRunnerHours: 100,
    },
    priority: 'high',
    rollout: { maxSurge: 2 },
    holds: ['demand-1'],
    paused: false,
  },
  {
    name: 'slots',
    replicas: 2,
    template: {
      organization: 'acme',
      ephemeral: false,
      volumeClaims: [{ name: 'work', mountPath: '/work', claim: 'own' }],
    },
  },
];

/** Of actions-runner-controller: both modes, and values of the chart. */
export const ARC_EXAMPLES: readonly object[] = [
  {
    apiVersion: 'actions.github.com/v1alpha1',
    kind: 'AutoscalingRunnerSet',
    metadata: {
      name: 'linux',
      namespace: 'arc',
      annotations: { 'actions.github.com/cleanup-no-permission-service-account-name': 'none' },
    },
    spec: {
      githubConfigUrl: 'https://github.com/acme',
      githubConfigSecret: 'token',
      runnerGroup: 'gpu',
      minRunners: 1,
      maxRunners: 5,
      runnerScaleSetLabels: ['a'],
      proxy: { https: { url: 'http://proxy', credentialSecretRef: 's' }, noProxy: ['x'] },
      template: POD,
    },
  },
  {
    githubConfigUrl: 'https://ghes.acme.com/acme/app',
    githubConfigSecret: { github_token: 't' },
    containerMode: { type: 'dind' },
    githubServerTLS: {
      certificateFrom: { configMapKeyRef: { name: 'ca', key: 'ca.crt' } },
      runnerMountPath: '/usr/local/share/ca-certificates/',
    },
    template: {
      spec: {
        terminationGracePeriodSeconds: 60,
        containers: [
          { name: 'runner', image: 'acme/runner:1', lifecycle: { preStop: {}, postStart: {} } },
        ],
      },
    },
  },
  {
    kind: 'List',
    items: [
      {
        apiVersion: 'actions.summerwind.dev/v1alpha1',
        kind: 'RunnerDeployment',
        metadata: { name: 'linux' },
        spec: {
          template: {
            spec: {
              organization: 'acme',
              labels: ['a'],
              image: 'x',
              env: [{ name: 'RUNNER_GRACEFUL_STOP_TIMEOUT', value: '90' }],
              dockerMTU: 1400,
              dockerEnv: [{ name: 'A', value: 'b' }],
              volumeMounts: [{ name: 'v', mountPath: '/runner' }],
            },
          },
        },
      },
      {
        apiVersion: 'actions.summerwind.dev/v1alpha1',
        kind: 'HorizontalRunnerAutoscaler',
        metadata: { name: 'linux' },
        spec: {
          scaleTargetRef: { name: 'linux' },
          minReplicas: 1,
          maxReplicas: 9,
          scaleUpTriggers: [{ githubEvent: { push: {} } }],
          scheduledOverrides: [
            {
              startTime: '2026-02-01T00:00:00+09:00',
              endTime: '2026-02-01T06:30:00+09:00',
              minReplicas: 4,
              recurrenceRule: { frequency: 'Weekly', untilTime: '2027-01-01T00:00:00Z' },
            },
          ],
        },
      },
      {
        apiVersion: 'actions.summerwind.dev/v1alpha1',
        kind: 'RunnerSet',
        metadata: { name: 'slots' },
        spec: {
          repository: 'acme/app',
          dockerEnabled: false,
          volumeSizeLimit: '1Gi',
          volumeClaimTemplates: [
            {
              metadata: { name: 'cache' },
              spec: {
                accessModes: ['ReadWriteOnce'],
                storageClassName: 'fast',
                resources: { requests: { storage: '1Gi' } },
              },
            },
          ],
          template: {
            spec: {
              containers: [
                { name: 'runner', volumeMounts: [{ name: 'cache', mountPath: '/cache' }] },
              ],
            },
          },
        },
      },
    ],
  },
];

export const POLICY_EXAMPLES: readonly object[] = [
  {},
  {
    images: ['ghcr.io/acme/*'],
    serviceAccounts: ['deployer'],
    secrets: ['ci-*'],
    claims: ['cache-*'],
    volumes: ['configMap', 'nfs', 'secret', 'projected', 'persistentVolumeClaim', 'hostPath'],
    hostPaths: ['/var/cache/ci'],
    host: ['network'],
    privileged: false,
    capabilities: ['NET_ADMIN'],
    runtimeClasses: ['gvisor'],
    resources: { cpu: '8', memory: '32Gi', 'ephemeral-storage': '1.5G' },
  },
];
