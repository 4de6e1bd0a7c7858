/** The Helm chart, and Helm. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { resolveBinary } from '../../tools/lab/resolve.ts';

export const CHART = fileURLToPath(new URL('../../deploy/chart', import.meta.url));

export interface Manifest {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

export const objectsOf = (yaml: string): Manifest[] =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS() as Manifest | null)
    .filter((each) => each !== null);

/** Minimal values of the chart. */
export const PLAIN_VALUES = {
  image: { repository: 'my-registry/holdfast-worker' },
  githubConfigSecret: 'holdfast-github',
} as const;

/** Values that enable all features of the chart. */
export const FULL_VALUES = {
  image: { repository: 'my-registry/holdfast-worker', tag: '0.2.0', pullPolicy: 'Always' },
  imagePullSecrets: [{ name: 'regcred' }],
  githubConfigUrl: 'https://github.example.com/acme',
  githubConfigSecret: {
    github_app_id: 123,
    github_app_installation_id: '456',
    github_app_private_key: '-----BEGIN\nkey\n',
  },
  credentials: { other: { type: 'pat', tokenFile: '/etc/holdfast/credentials/other/token' } },
  credentialSecrets: ['other'],
  temporal: {
    address: 'temporal:7233',
    namespace: 'ci',
    tlsSecret: 'temporal-tls',
    tlsServerCa: true,
    apiKeySecret: 'temporal-key',
    codecKeySecret: 'codec',
  },
  readNodes: true,
  readQuotas: true,
  viewerGroup: 'ci-viewers',
  runnerSetNamespace: 'ci-sets',
  runnerImage: 'my/runner:1',
  proxy: {
    http: { url: 'http://proxy.acme.com:3128' },
    https: { url: 'http://proxy.acme.com:3128', credentialSecretRef: 'proxy-login' },
    noProxy: ['.acme.com', 'localhost'],
  },
  githubServerTLS: { certificateFrom: { configMapKeyRef: { name: 'acme-ca', key: 'root.pem' } } },
  settings: {
    HOLDFAST_STORE_BUCKET: 'artifacts',
    HOLDFAST_STORE_SECRET: 'bucket',
    HOLDFAST_LOG_LEVEL: 'debug',
    HOLDFAST_MAX_CONCURRENT_ACTIVITIES: 300,
    HOLDFAST_SWEEP_INTERVAL: 'off',
    HOLDFAST_TIMEOUTS: { default: { jobTimeoutCap: '12h' } },
  },
  podPolicy: {
    images: ['docker:dind', 'postgres:17'],
    privileged: true,
    serviceAccounts: ['holdfast-job-pods'],
    resources: { cpu: '8' },
  },
  worker: {
    podSpec: {
      nodeSelector: { pool: 'infra' },
      tolerations: [{ key: 'infra', operator: 'Exists' }],
      terminationGracePeriodSeconds: 90,
    },
    podAnnotations: { 'example.com/team': 'ci' },
    podLabels: { team: 'ci' },
    env: [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=1536' }],
    autoscaling: { enabled: true, authentication: 'temporal' },
  },
  webhook: {
    enabled: true,
    service: { type: 'LoadBalancer', annotations: { 'example.com/a': 'b' } },
    ingress: {
      enabled: true,
      host: 'hooks.example.com',
      className: 'nginx',
      tlsSecret: 'hooks-tls',
      annotations: { 'example.com/a': 'b' },
    },
    httpRoute: {
      enabled: true,
      host: 'hooks.example.com',
      parentRefs: [{ name: 'public', namespace: 'gateways' }],
    },
  },
  sweep: { cronJob: true },
  traces: { endpoint: 'https://otel-collector.observability:4318', ratio: 0.1 },
  metrics: {
    serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
    prometheusRule: { enabled: true },
    dashboards: { enabled: true },
  },
  networkPolicies: {
    runnersExcept: ['203.0.113.7/32', '2001:db8::/32'],
    runnersEgress: [{ to: [{ ipBlock: { cidr: '10.96.0.1/32' } }], ports: [{ port: 443 }] }],
  },
  sets: [
    { name: 'linux', minRunners: 2, maxRunners: 50, runnerGroup: 'large machines' },
    {
      name: 'assigned',
      maxRunners: 50,
      demand: 'scaleSet',
      scaleSet: { name: 'taken-over', adopt: true },
      capacity: 'observed',
    },
    {
      name: 'fixed',
      replicas: 3,
      githubConfigUrl: 'https://github.example.com/acme/app',
      labels: ['self-hosted', 'x'],
      runnerGroupId: '7',
      proxy: {},
      githubServerTLS: { certificateFrom: { secretKeyRef: { name: 'app-ca', key: 'ca.crt' } } },
      set: { template: { ephemeral: false, timeouts: { jobTimeout: '2h' } } },
    },
    {
      name: 'docker',
      maxRunners: 5,
      containerMode: { type: 'dind' },
      template: {
        spec: {
          containers: [
            { name: 'runner', env: [{ name: 'A', value: 'b' }] },
            { name: 'db', image: 'postgres:17' },
          ],
          volumes: [{ name: 'extra', emptyDir: {} }],
        },
      },
    },
    {
      name: 'pods',
      maxRunners: 5,
      githubConfigUrl: 'https://github.example.com/enterprises/big',
      containerMode: {
        type: 'kubernetes',
        namespace: 'holdfast-pods',
        kubernetesModeWorkVolumeClaim: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
        },
      },
    },
    {
      name: 'novolume',
      maxRunners: 5,
      containerMode: { type: 'kubernetes-novolume', namespace: 'holdfast-novolume' },
    },
    {
      name: 'queue',
      maxRunners: 5,
      set: { template: { demand: 'scaleSet', scaleSet: { name: 'arc-linux', adopt: true } } },
    },
  ],
} as const;

export interface HelmRun {
  readonly stdout: string;
  readonly stderr: string;
}

/** The lab's Helm. */
export class Helm {
  readonly #binary: string;
  readonly #env: NodeJS.ProcessEnv;
  /** Folder of the values and of Helm's own files, which replaces the user's. */
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-helm-'));

  private constructor(binary: string, kubeconfig: string | undefined) {
    this.#binary = binary;
    const home = Object.fromEntries(
      ['HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME'].map((name) => [name, this.#folder]),
    );
    this.#env = {
      PATH: process.env['PATH'],
      HOME: this.#folder,
      ...home,
      ...(kubeconfig !== undefined && { KUBECONFIG: kubeconfig }),
    };
  }

  /**
   * @param kubeconfig - kubeconfig of the cluster, for commands that need one
   * @throws ComponentUnavailableError
   */
  static async find(kubeconfig?: string): Promise<Helm> {
    return new Helm(
      await resolveBinary('helm', { progress: (line) => process.stderr.write(`[lab] ${line}\n`) }),
      kubeconfig,
    );
  }

  close(): void {
    rmSync(this.#folder, { recursive: true });
  }

  /** @throws Error with Helm's output */
  async run(...args: readonly string[]): Promise<HelmRun> {
    return await promisify(execFile)(this.#binary, args, { env: this.#env, maxBuffer: 2 ** 26 });
  }

  /** Helm's arguments for these values. */
  values(values: object): string[] {
    const file = join(mkdtempSync(join(this.#folder, 'values-')), 'values.yaml');
    writeFileSync(file, stringify(values));
    return ['--values', file];
  }

  /**
   * Returns the objects that would be installed, including hooks.
   * @param more - further arguments
   */
  async template(
    values: object,
    { release = 'holdfast', namespace = 'holdfast' } = {},
    ...more: readonly string[]
  ): Promise<Manifest[]> {
    return objectsOf(
      (
        await this.run(
          'template',
          release,
          CHART,
          '--namespace',
          namespace,
          ...this.values(values),
          ...more,
        )
      ).stdout,
    );
  }
}
