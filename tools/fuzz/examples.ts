/** Inputs as people write them, with about every field. */
const POD = {
  metadata: { labels: { team: 'web' }, annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' } },
  spec: {
    serviceAccountName: 'default',
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'ci', operator: 'Exists' }],
    imagePullSecrets: [{ name: 'ci-pull' }],
    securityContext: { fsGroup: 1000, sysctls: [{ name: 'kernel.shm_rmid_forced', value: '0' }] },
    runtimeClassName: 'gvisor',
    hostNetwork: false,
    initContainers: [{ name: 'prepare', image: 'busybox:1', command: ['true'], resources: { limits: { cpu: '500m', memory: '64Mi' } } }],
    containers: [
      {
        name: 'runner',
        image: 'ghcr.io/acme/runner:1',
        env: [{ name: 'A', value: 'b' }, { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'ci-token', key: 'token' } } }],
        envFrom: [{ secretRef: { name: 'ci-env' } }],
        ports: [{ containerPort: 80, hostPort: 8080 }],
        securityContext: { privileged: false, capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] }, seccompProfile: { type: 'RuntimeDefault' } },
        resources: { requests: { cpu: '1' }, limits: { cpu: '2', memory: '1.5Gi', 'ephemeral-storage': '10G' } },
        volumeMounts: [{ name: 'cache', mountPath: '/cache' }],
        lifecycle: { postStart: { exec: { command: ['true'] } } },
      },
      { name: 'dind', image: 'docker:27-dind' },
    ],
    volumes: [
      { name: 'cache', persistentVolumeClaim: { claimName: 'cache-1' } },
      { name: 'host', hostPath: { path: '/var/cache/ci' } },
      { name: 'all', projected: { sources: [{ secret: { name: 'ci-a' } }, { serviceAccountToken: { path: 'token' } }] } },
      { name: 'secret', secret: { secretName: 'ci-b' } },
    ],
  },
};

export const RUNNER_EXAMPLES: readonly object[] = [
  { repository: 'acme/app', labels: ['self-hosted', 'linux'] },
  { enterprise: 'big', credential: 'prod', runnerGroupId: 7, name: 'e-1', ephemeral: false, set: 'linux', namespace: 'ci' },
  {
    organization: 'acme',
    image: 'ghcr.io/acme/runner:1',
    command: ['./run.sh'],
    args: ['--once'],
    env: { HTTP_PROXY: 'http://proxy:3128' },
    pod: POD,
    supervisor: 'inject',
    volumeClaims: [{ name: 'work', mountPath: '/work', storage: '10Gi', storageClass: 'fast', accessModes: ['ReadWriteOnce'] }, { name: 'shared', mountPath: '/shared', claim: 'cache-shared' }],
    timeouts: { registration: '5m', jobTimeout: '2h', idle: '10m', podPending: '10m' },
    stop: { drainTimeout: '10m', signalTimeout: '30s', cleanupTimeout: '15s', signals: 'SIGINT,SIGTERM@5s', to: 'process', cleanupCommand: ['./clean.sh'] },
    onTerm: 'drain',
    onEviction: 'replace',
    intervals: { busyRetry: '1m', idleConfirm: '3s' },
  },
  { ciServer: 'none', image: 'example.com/train:3', command: ['./train.sh'], onTerm: 'checkpoint', onEviction: 'resume', maxAttempts: 3, volumeClaims: [{ name: 'state', mountPath: '/state', storage: '10Gi' }], stop: { gracePeriod: '15s' } },
];

export const SET_EXAMPLES: readonly object[] = [
  { name: 'linux', replicas: 3, template: RUNNER_EXAMPLES[0] },
  {
    name: 'demand',
    minIdle: 1,
    max: 20,
    template: { organization: 'acme', labels: ['linux', 'x64'], pod: POD },
    scaleDownDelay: '10m',
    recreationGuard: '0s',
    queueCheck: '1m',
    schedules: [{ cron: '0 8 * * 1-5', timeZone: 'Europe/Berlin', duration: '10h', minIdle: 5, max: 50 }],
    rollout: { maxSurge: 2 },
    holds: ['demand-1'],
    paused: false,
  },
  { name: 'slots', replicas: 2, template: { organization: 'acme', ephemeral: false, volumeClaims: [{ name: 'work', mountPath: '/work', claim: 'own' }] } },
];

export const POLICY_EXAMPLES: readonly object[] = [
  {},
  {
    images: ['ghcr.io/acme/*'],
    namespaces: ['ci-*'],
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
