/** The Helm chart, rendered by Helm, against what else says the same: the plain manifests, the schema, a set's own validation, the API server. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse, stringify } from 'yaml';
import {
  admissionPolicy,
  jobPodAdmissionPolicy,
} from '../../activities/compute/kubernetes/podPolicy/admissionPolicy.ts';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { requiredPermissions } from '../../worker/checks/permissions.ts';
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import { ARC_EXAMPLES } from '../../tools/fuzz/examples.ts';
import { parseRunnerSetInput } from '../../core/input/runnerSet.ts';
import { SETTINGS_FROM_OTHER_VALUES } from '../../tools/chart/schema.ts';
import { inputOf, type RunnerSetResource } from '../../worker/controller/runnerSetResource.ts';
import { connectionSettings } from '../../cli/shared/session.ts';
import { standaloneConfig } from '../../cli/sweep/sweepStandalone.ts';
import { loadConfig } from '../../worker/settings/config.ts';
import { settings } from '../../worker/settings/settings.ts';
import { loadWebhookConfig } from '../../worker/settings/webhookConfig.ts';
import {
  CHART,
  FULL_VALUES,
  Helm,
  objectsOf,
  PLAIN_VALUES,
  type Manifest,
} from '../support/chart.ts';
import { runCli } from '../support/cli.ts';
import { describeIf } from '../support/lab.ts';

const DEPLOY = join(CHART, '..');

const EVERYTHING = {
  images: ['ghcr.io/acme/*', 'a.b+c(d)[e]{f}|g^h$?', '<&>"\\'],
  serviceAccounts: ['deployer'],
  secrets: ['ci-*'],
  claims: ['cache-*'],
  volumes: ['nfs'],
  hostPaths: ['/var/cache/ci/', '/data'],
  host: ['network', 'users'],
  privileged: true,
  capabilities: ['NET_ADMIN', '*'],
  runtimeClasses: ['gvisor'],
  priorityClasses: ['ci-*'],
  nodeSelectors: ['pool=ci-*', 'disk'],
  tolerations: ['dedicated=ci', '*'],
  labels: ['team'],
  annotations: ['acme.com/*'],
  fields: ['affinity', 'containers.lifecycle'],
  resources: { cpu: '8', memory: '32Gi' },
  userNamespaces: true,
};

const JOB_PODS = {
  githubConfigUrl: 'https://github.com/acme',
  podPolicy: { serviceAccounts: ['holdfast-job-pods'] },
};
const jobPodSet = (mode: object): object => ({
  name: 'a',
  maxRunners: 1,
  containerMode: { type: 'kubernetes', ...mode },
});

/** What only the chart's objects have. */
function plain({ metadata, ...others }: Manifest): Manifest {
  const { labels: _labels, annotations: _annotations, ...own } = metadata;
  return { metadata: own, ...others };
}
interface Container {
  readonly command?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}

interface Workload {
  readonly spec?: {
    readonly jobTemplate?: Workload;
    readonly template?: { readonly spec: { readonly containers: readonly Container[] } };
  };
}

/** The pods of all Deployments, Jobs and CronJobs. */
function podSpecs(objects: readonly Manifest[]): { readonly containers: readonly Container[] }[] {
  return objects.flatMap((object) => {
    if (!['Deployment', 'Job', 'CronJob'].includes(object.kind ?? '')) return [];
    const { spec } = object as Workload;
    return (spec?.jobTemplate ?? { spec }).spec?.template?.spec ?? [];
  });
}

/** The variables of a container. Those with a value from a Secret have a number. */
const variables = ({ env }: Container): Record<string, string> =>
  Object.fromEntries(env.map(({ name, value }) => [name, value ?? '17']));

const keyOf = ({ kind, metadata }: Manifest): string =>
  `${kind} ${metadata.namespace ?? '-'}/${metadata.name}`;

await describeIf(
  'the chart',
  async () => await Helm.find(),
  { kubernetes: true },
  (helm) => {
    afterAll(() => helm.close());

    test('passes lint', async () => {
      for (const values of [PLAIN_VALUES, FULL_VALUES])
        expect(
          (await helm.run('lint', CHART, '--strict', ...helm.values(values))).stdout,
        ).toContain('1 chart(s) linted, 0 chart(s) failed');
    });

    test('creates the objects of the plain manifests, and no others', async () => {
      // Of job pods there is a Role for each set, which has a test of its own.
      const files = readdirSync(DEPLOY).filter(
        (name) => name.endsWith('.yaml') && name !== 'rbac-job-pods.yaml',
      );
      const said = files
        .flatMap((name) => objectsOf(readFileSync(join(DEPLOY, name), 'utf8')))
        .filter(({ kind }) => kind !== 'Namespace');
      const values = {
        ...PLAIN_VALUES,
        readNodes: true,
        readQuotas: true,
        viewerGroup: 'holdfast-viewers',
        webhook: { enabled: true },
        installation: 'holdfast',
      };
      // The plain worker knows no such resources: a setting of its own turns them on.
      const ofResources = (
        await helm.template({ ...values, runnerSetNamespace: 'holdfast-runners' })
      ).filter(({ metadata }) => metadata.name?.endsWith('-runner-sets'));
      const made = [...(await helm.template(values)), ...ofResources].filter(
        ({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined,
      );
      expect(made.map(keyOf).toSorted()).toEqual(said.map(keyOf).toSorted());
      for (const object of said)
        expect(plain(made.find((each) => keyOf(each) === keyOf(object))!)).toEqual(object);
    });

    test('workers are replaced when the pod policy changes, which they read only when they start', async () => {
      const annotations = async (podPolicy: object): Promise<object | undefined> => {
        const worker = (await helm.template({ ...PLAIN_VALUES, podPolicy })).find(
          ({ kind }) => kind === 'Deployment',
        ) as unknown as { spec: { template: { metadata: { annotations?: object } } } };
        return worker.spec.template.metadata.annotations;
      };
      expect(await annotations({ privileged: true })).toEqual(
        await annotations({ privileged: true }),
      );
      expect(await annotations({ privileged: true })).not.toEqual(
        await annotations({ privileged: false }),
      );
    });

    test("a WorkerDeployment has the Deployment's pods, except for additions of Temporal's worker controller", async () => {
      const values = {
        ...FULL_VALUES,
        worker: { ...FULL_VALUES.worker, autoscaling: { enabled: false } },
      };
      interface Named {
        readonly name: string;
        readonly value?: string;
      }
      interface Workers extends Manifest {
        readonly spec: {
          readonly template: {
            readonly metadata: object;
            readonly spec: {
              readonly volumes: readonly Named[];
              readonly containers: readonly {
                readonly env: readonly Named[];
                readonly volumeMounts: readonly Named[];
              }[];
            };
          };
        };
      }
      const workers = async (more: object): Promise<Workers> => {
        const { worker } = values;
        return (await helm.template({ ...values, worker: { ...worker, ...more } })).find(
          ({ kind, metadata }) =>
            ['Deployment', 'WorkerDeployment'].includes(kind ?? '') &&
            metadata.name === 'holdfast-worker',
        ) as Workers;
      };
      const [plainly, versioned] = await Promise.all([
        workers({}),
        workers({ workerDeployment: { enabled: true } }),
      ]);
      expect([plainly.kind, versioned.kind]).toEqual(['Deployment', 'WorkerDeployment']);
      expect(versioned.spec.template.metadata).toEqual(plainly.spec.template.metadata);
      const [
        {
          containers: [one],
          ...pod
        },
        {
          containers: [other],
          ...versionedPod
        },
      ] = [plainly.spec.template.spec, versioned.spec.template.spec];
      // A volume of the same name twice is refused by the API server.
      const added = [
        'TEMPORAL_ADDRESS',
        'TEMPORAL_NAMESPACE',
        'TEMPORAL_TLS_CLIENT_CERT_PATH',
        'TEMPORAL_TLS_CLIENT_KEY_PATH',
        'HOLDFAST_TEMPORAL_API_KEY_FILE',
        'temporal-tls',
        'temporal-api-key',
      ];
      const own = (list: readonly Named[]): Named[] =>
        list
          .filter(({ name }) => !added.includes(name))
          .map((each) =>
            each.name === 'TEMPORAL_TLS_SERVER_CA_CERT_PATH'
              ? { ...each, value: '/etc/temporal/tls/ca.crt' }
              : each,
          );
      expect(new Set([...one!.env, ...pod.volumes].map(({ name }) => name))).toEqual(
        new Set([
          ...own(one!.env).map(({ name }) => name),
          ...own(pod.volumes).map(({ name }) => name),
          ...added,
        ]),
      );
      expect(versionedPod).toEqual({ ...pod, volumes: own(pod.volumes) });
      expect(other).toEqual({ ...one, env: own(one!.env), volumeMounts: own(one!.volumeMounts) });
    });

    test('contains the alerts and the dashboards unchanged', async () => {
      const objects = (await helm.template(FULL_VALUES)) as (Manifest & {
        spec: unknown;
        data: Record<string, string>;
      })[];
      expect(objects.find(({ kind }) => kind === 'PrometheusRule')?.spec).toEqual(
        parse(readFileSync(join(DEPLOY, 'prometheus', 'rules.yaml'), 'utf8')),
      );
      const dashboards = objects
        .filter(({ metadata }) => metadata.labels?.['grafana_dashboard'] === '1')
        .flatMap(({ data }) => Object.entries(data));
      expect(Object.fromEntries(dashboards)).toEqual(
        Object.fromEntries(
          readdirSync(join(DEPLOY, 'grafana')).map((name) => [
            `holdfast-${name}`,
            readFileSync(join(DEPLOY, 'grafana', name), 'utf8'),
          ]),
        ),
      );
    });

    test('two releases have no names in common for objects in the same namespace', async () => {
      const [one, other] = await Promise.all([
        helm.template(FULL_VALUES),
        helm.template(
          {
            ...FULL_VALUES,
            // Sets have the names that the values give them.
            runnerSetNamespace: 'other-sets',
            podPolicy: {
              images: ['docker:dind'],
              privileged: true,
              serviceAccounts: ['ci-holdfast-job-pods'],
            },
          },
          { release: 'ci', namespace: 'ci' },
        ),
      ]);
      const names = new Set(one.map(keyOf));
      expect(other.map(keyOf).filter((key) => names.has(key))).toEqual([]);
    });

    describe('settings', () => {
      const envOf = (objects: readonly Manifest[], name: string): Record<string, string> => {
        const [pod] = podSpecs(
          objects.filter(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name),
        );
        return variables(pod!.containers[0]!);
      };
      /** As the kubelet does: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/ */
      const expanded = (env: Record<string, string>): Record<string, string> =>
        Object.fromEntries(
          Object.entries(env).map(([name, value]) => [
            name,
            value.replaceAll(/\$\((\w+)\)/g, (_, other: string) => env[other] ?? ''),
          ]),
        );
      const folders: string[] = [];
      afterAll(() => {
        for (const folder of folders) rmSync(folder, { recursive: true });
      });
      /** The policy's file is where the pod has it mounted. */
      const here = (env: Record<string, string>, policy: unknown): Record<string, string> => {
        const folder = mkdtempSync(join(tmpdir(), 'holdfast-chart-'));
        folders.push(folder);
        writeFileSync(join(folder, 'pod-policy.yaml'), stringify(policy));
        writeFileSync(join(folder, 'keys'), `a ${Buffer.alloc(32).toString('base64')}\n`);
        // Files of Secrets are read when they are needed, but for these.
        const {
          TEMPORAL_TLS_CLIENT_CERT_PATH: _crt,
          TEMPORAL_TLS_CLIENT_KEY_PATH: _key,
          TEMPORAL_TLS_SERVER_CA_CERT_PATH: _ca,
          HOLDFAST_TEMPORAL_API_KEY_FILE: _apiKey,
          ...others
        } = env;
        return {
          ...others,
          ...(env['HOLDFAST_POD_POLICY_FILE'] && {
            HOLDFAST_POD_POLICY_FILE: join(folder, 'pod-policy.yaml'),
          }),
        };
      };

      test('for claims of jobs reach the worker, and its Role has all permissions for them', async () => {
        const objects = await helm.template({
          ...PLAIN_VALUES,
          settings: {
            HOLDFAST_JOB_CLAIM_SIZE: '1Gi',
            HOLDFAST_JOB_CLAIM_STORAGE_CLASS: 'fast',
          },
        });
        expect(loadConfig(envOf(objects, 'holdfast-worker')).compute).toMatchObject({
          store: undefined,
          jobClaim: { size: '1Gi', storageClass: 'fast' },
        });
        const kinds = ['Role', 'ClusterRole'];
        const roles = (all: readonly Manifest[]): object[] =>
          all.filter(({ kind }) => kinds.includes(kind ?? '')).map(plain);
        expect(roles(objects)).toEqual(roles(await helm.template(PLAIN_VALUES)));
      });

      test('with minimal values are valid', async () => {
        const config = loadConfig(envOf(await helm.template(PLAIN_VALUES), 'holdfast-worker'));
        expect(config.warnings).toEqual([]);
        expect(config).toMatchObject({
          taskQueue: 'holdfast',
          compute: {
            namespace: 'holdfast-runners',
            supervisorImage: 'my-registry/holdfast-worker:0.1.0',
          },
          credentials: {
            default: {
              type: 'pat',
              tokenFile: '/etc/holdfast/github/github_token',
              apiUrl: 'https://api.github.com',
            },
          },
        });
      });

      test('with all values are valid: a GitHub App with its Secret, GitHub Enterprise Server, a pod policy', async () => {
        const objects = await helm.template(FULL_VALUES);
        const config = loadConfig(
          here(expanded(envOf(objects, 'holdfast-worker')), FULL_VALUES.podPolicy),
        );
        expect(config.warnings).toEqual([]);
        expect(config).toMatchObject({
          credentials: {
            default: {
              type: 'app',
              appId: 17,
              installationId: 17,
              apiUrl: 'https://github.example.com/api/v3',
            },
            other: { type: 'pat' },
          },
          compute: {
            image: 'my/runner:1',
            store: { bucket: 'artifacts', secret: 'bucket' },
            policy: FULL_VALUES.podPolicy,
          },
          log: { level: 'debug' },
          maxActivities: 300,
          traces: true,
          redeliveryIntervalMs: 300_000,
          sweepIntervalMs: 0,
          timeouts: { default: { jobTimeoutCap: expect.anything() } },
        });
        const secret = join(folders.at(-1)!, 'keys');
        expect(
          loadWebhookConfig({
            ...here(envOf(objects, 'holdfast-webhook'), {}),
            HOLDFAST_WEBHOOK_SECRET_FILE: secret,
          }),
        ).toMatchObject({ traces: true, warnings: [] });
        const {
          spec: { egress },
        } = objects.find(
          ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'holdfast-webhook',
        ) as unknown as { spec: { egress: { ports: { port: number }[] }[] } };
        expect(egress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([
          53, 53, 7233, 4318,
        ]);
      });

      /** How each command of the chart's pods reads its settings. */
      const LOADERS: Readonly<Record<string, (env: Record<string, string>) => unknown>> = {
        worker: loadConfig,
        'holdfast sweep --standalone': standaloneConfig,
        'holdfast webhook': loadWebhookConfig,
        'holdfast decommission --yes --reason helm uninstall holdfast': (env) =>
          connectionSettings({}, env),
      };

      test.each<[what: string, values: object, commands: number]>([
        ['minimal values', PLAIN_VALUES, 3],
        ['all values', FULL_VALUES, 4],
        [
          'all values and a store in a claim',
          { ...FULL_VALUES, settings: { HOLDFAST_STORE_VOLUME_CLAIM: 'artifacts' } },
          4,
        ],
      ])('of every pod are valid, with %s', async (_what, values, commands) => {
        const containers = podSpecs(await helm.template(values)).flatMap((pod) => pod.containers);
        const found = containers.map(({ command = ['worker'] }) => command.join(' '));
        expect(new Set(found).size).toBe(commands);
        for (const [index, container] of containers.entries()) {
          const env = here(expanded(variables(container)), FULL_VALUES.podPolicy);
          const secret = { HOLDFAST_WEBHOOK_SECRET_FILE: join(folders.at(-1)!, 'keys') };
          const needs = env['HOLDFAST_WEBHOOK_SECRET_FILE'] === undefined ? {} : secret;
          expect(() => LOADERS[found[index]!]!({ ...env, ...needs })).not.toThrow();
        }
      });

      test('of large numbers are written in digits', async () => {
        const large = 1_234_567;
        const { worker } = FULL_VALUES;
        const values = {
          ...FULL_VALUES,
          githubConfigSecret: {
            github_app_id: large,
            github_app_installation_id: large,
            github_app_private_key: 'key',
          },
          settings: { HOLDFAST_POD_LOG_MAX_BYTES: large },
          hooks: { decommissionSeconds: large },
          webhook: { enabled: true, replicas: large },
        };
        const sizes = { enabled: true, minReplicas: large, maxReplicas: large };
        for (const autoscaling of [{ enabled: false }, { ...sizes, targetQueueSize: large }]) {
          const { stdout } = await helm.run(
            'template',
            'holdfast',
            CHART,
            ...helm.values({ ...values, worker: { ...worker, replicas: large, autoscaling } }),
          );
          expect(stdout).toContain('github_app_id: "1234567"');
          expect(stdout.match(/^.*\de\+\d.*$/gm)).toBeNull();
        }
      });

      test('are each settings of the worker, or derived from another value', () => {
        const { properties } = (
          JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as {
            properties: { settings: { properties: object } };
          }
        ).properties.settings;
        expect([...Object.keys(properties), ...SETTINGS_FROM_OTHER_VALUES].toSorted()).toEqual(
          Object.keys(settings.shape).toSorted(),
        );
      });
    });

    describe('rejects', () => {
      test.each<[string, object, string]>([
        ['no image', { image: { repository: '' } }, 'image.repository: name the image'],
        [
          'a digest as the tag',
          { image: { tag: 'sha256:abc' } },
          'image.tag: is a digest; set image.digest instead',
        ],
        [
          'a tag and a digest',
          { image: { tag: '1', digest: 'sha256:abc' } },
          'image: has both a tag and a digest',
        ],
        [
          'a set at the top',
          { maxRunners: 3 },
          'maxRunners: is a field of a set, because one release has many sets',
        ],
        [
          'the pod template of a set at the top',
          { template: { spec: {} } },
          'template: is a field of a set',
        ],
        ['no credential', { githubConfigSecret: '' }, 'githubConfigSecret: name a Secret'],
        [
          'runners beside the workers',
          { runnersNamespace: 'holdfast' },
          "namespaces: holdfast is the release's own",
        ],
        [
          'versions that are scaled as one',
          { worker: { workerDeployment: { enabled: true }, autoscaling: { enabled: true } } },
          'worker.autoscaling: is of one Deployment',
        ],
        [
          'a value that there is not',
          { replicas: 3 },
          "additional properties 'replicas' not allowed",
        ],
        [
          'a setting that there is not',
          { settings: { HOLDFAST_LOGLEVEL: 'debug' } },
          "additional properties 'HOLDFAST_LOGLEVEL' not allowed",
        ],
        [
          'a setting that another value is',
          { settings: { HOLDFAST_TASK_QUEUE: 'x' } },
          "additional properties 'HOLDFAST_TASK_QUEUE' not allowed",
        ],
        [
          'a pod policy with a slip',
          { podPolicy: { privilegd: true } },
          "additional properties 'privilegd' not allowed",
        ],
        ['the wrong type', { worker: { replicas: 'two' } }, 'got string, want integer'],
        [
          'a set without a scope',
          { sets: [{ name: 'a', maxRunners: 1 }] },
          'sets: a needs githubConfigUrl',
        ],
        [
          'a set without a size',
          { githubConfigUrl: 'https://github.com/acme', sets: [{ name: 'a' }] },
          'sets: a needs maxRunners, or replicas',
        ],
        [
          'a set of two sizes',
          {
            githubConfigUrl: 'https://github.com/acme',
            sets: [{ name: 'a', replicas: 1, maxRunners: 2 }],
          },
          'one excludes the other',
        ],
        [
          'a set whose name no resource can have',
          {
            githubConfigUrl: 'https://github.com/acme',
            sets: [{ name: 'Linux_X64', maxRunners: 1 }],
          },
          "'Linux_X64' does not match pattern",
        ],
        [
          'an address with too much in it',
          { githubConfigUrl: 'https://github.com/a/b/c' },
          'does not match pattern',
        ],
        [
          'dind without leave',
          {
            githubConfigUrl: 'https://github.com/acme',
            sets: [{ name: 'a', maxRunners: 1, containerMode: { type: 'dind' } }],
          },
          'set podPolicy.rules: [{sets: [a], privileged: true, images: ["docker:dind"]}], and label the namespace holdfast-runners',
        ],
        [
          'job pods without leave',
          {
            githubConfigUrl: 'https://github.com/acme',
            sets: [
              { name: 'a', maxRunners: 1, containerMode: { type: 'kubernetes', namespace: 'a' } },
            ],
          },
          'set podPolicy.serviceAccounts: [holdfast-job-pods]',
        ],
        [
          'job pods without a namespace',
          { ...JOB_PODS, sets: [jobPodSet({})] },
          'set containerMode.namespace, a namespace for this set alone',
        ],
        [
          'job pods in the namespace of other runners',
          { ...JOB_PODS, namespaces: ['web'], sets: [jobPodSet({ namespace: 'web' })] },
          'name a namespace for this set alone',
        ],
        [
          'a namespace of job pods without job pods',
          { ...JOB_PODS, sets: [jobPodSet({ type: 'dind', namespace: 'a' })] },
          'sets: containerMode.namespace of a is only for the types kubernetes',
        ],
        [
          'job pods of two sets in one namespace',
          {
            ...JOB_PODS,
            sets: [jobPodSet({ namespace: 'a' }), { ...jobPodSet({ namespace: 'a' }), name: 'b' }],
          },
          'containerMode.namespace of b is a',
        ],
        [
          'job pods of static runners',
          {
            ...JOB_PODS,
            sets: [{ ...jobPodSet({ namespace: 'a' }), set: { template: { ephemeral: false } } }],
          },
          'a job could read the registration token',
        ],
        [
          'a policy about another worker',
          { admissionPolicy: { manifest: 'system:serviceaccount:other:worker' } },
          'make it with: holdfast pod-policy --service-account holdfast/holdfast-worker',
        ],
      ])('%s', async (_what, values, message) => {
        await expect(helm.template({ ...PLAIN_VALUES, ...values })).rejects.toThrow(message);
      });
    });

    test.each<[what: string, policy: object]>([
      ['the default policy', {}],
      ['one with everything', { ...EVERYTHING, rules: [] }],
      ['one that takes the defaults away', { volumes: [], nodeSelectors: [] }],
      [
        'rules, the first of which counts',
        {
          ...EVERYTHING,
          rules: [
            { sets: ['docker', 'dind-*'], images: ['docker:dind'], privileged: false, volumes: [] },
            { scopes: ['acme', 'acme/*', 'enterprises/big', '*'], fields: ['affinity'] },
            { scopes: ['other'], credentials: ['big'], resources: { cpu: '64' } },
          ],
        },
      ],
    ])('installs %s as "holdfast pod-policy" prints it', async (_what, podPolicy) => {
      const own = {
        supervisorImage: 'holdfast-supervisor:1',
        runnerImage: 'my/runner:1',
        settings: { HOLDFAST_STORE_BUCKET: 'b', HOLDFAST_STORE_SECRET: 'bucket' },
        podTemplate: { spec: { containers: [{ name: 'proxy', image: 'proxy:1' }] } },
      };
      const objects = await helm.template({
        ...PLAIN_VALUES,
        ...own,
        podPolicy,
        admissionPolicy: { enabled: true },
      });
      const printed = admissionPolicy(
        podPolicySchema.parse(podPolicy),
        {
          images: ['my/runner:1', 'holdfast-supervisor:1', 'proxy:1'],
          namespaces: ['holdfast-runners'],
          storeSecret: 'bucket',
        },
        { name: 'holdfast', serviceAccount: 'holdfast/holdfast-worker' },
      );
      const byKind = (all: readonly object[]): Manifest[] =>
        (all as Manifest[]).toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
      expect(
        byKind(objects.filter(({ kind }) => kind?.startsWith('ValidatingAdmission')).map(plain)),
      ).toEqual(byKind(printed));
    });

    describe('allows connections of workers to', () => {
      interface Rule {
        readonly to?: readonly { ipBlock?: { except: readonly string[] } }[];
        readonly ports: readonly { port: number }[];
      }
      const egress = async (values: object): Promise<readonly Rule[]> => {
        const policy = (await helm.template({ ...PLAIN_VALUES, ...values })).find(
          ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'holdfast-worker',
        ) as unknown as { spec: { egress: readonly Rule[] } };
        return policy.spec.egress;
      };
      const withPort = (rules: readonly Rule[], port: number): readonly Rule[] =>
        rules.filter(({ ports }) => ports.some((each) => each.port === port));

      test.each<[string, object, number]>([
        [
          'a server of the credentials',
          { credentials: { a: { apiUrl: 'https://x:8443/' } } },
          8443,
        ],
        [
          'a proxy of the credentials',
          { credentials: { a: { proxy: 'http://u:p@x:3128' } } },
          3128,
        ],
        ['HOLDFAST_GITHUB_URL', { settings: { HOLDFAST_GITHUB_URL: 'https://x:8443' } }, 8443],
        [
          'a server of one set',
          { sets: [{ name: 'a', maxRunners: 1, githubConfigUrl: 'https://x:8443/acme' }] },
          8443,
        ],
        ['a proxy', { proxy: { https: { url: 'http://x:3128' } } }, 3128],
      ])('%s', async (_what, values, port) => {
        expect(withPort(await egress(values), port)).toHaveLength(1);
        expect(withPort(await egress({}), port)).toEqual([]);
      });

      test.each<[string, object]>([
        ['a proxy without a port', { proxy: { http: { url: 'http://proxy.acme.com' } } }],
        ['a server at port 80', { credentials: { a: { apiUrl: 'http://x:80/api/v3' } } }],
        ['a port of their own', { networkPolicies: { workersPorts: [80, 443] } }],
      ])('%s, and not to a metadata service at port 80', async (_what, values) => {
        const [rule, ...others] = withPort(await egress(values), 80);
        expect(others).toEqual([]);
        const blocks = (rule?.to ?? []).flatMap(({ ipBlock }) => ipBlock ?? []);
        const excepted = new BlockList();
        for (const [net = '', prefix] of blocks.flatMap(({ except }) =>
          except.map((each) => each.split('/')),
        ))
          excepted.addSubnet(net, Number(prefix), isIPv6(net) ? 'ipv6' : 'ipv4');
        const isExcepted = (ip: string): boolean =>
          excepted.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4');
        expect(
          ['169.254.169.254', '168.63.129.16', 'fd00:ec2::254', '64:ff9b::a9fe:a9fe'].map(
            isExcepted,
          ),
        ).toEqual([true, true, true, true]);
        expect(['10.1.2.3', '203.0.113.7', 'fd12::1'].map(isExcepted)).toEqual([
          false,
          false,
          false,
        ]);
      });
    });

    test('has one Role and one policy for a namespace that is listed twice', async () => {
      const keys = async (namespaces: readonly string[]): Promise<string[]> =>
        (await helm.template({ ...PLAIN_VALUES, namespaces })).map(keyOf).toSorted();
      expect(await keys(['holdfast-runners'])).toEqual(await keys([]));
    });

    test('workers without supervisor and without sweep may patch pods, because an image may have the supervisor', async () => {
      const objects = await helm.template(
        { ...PLAIN_VALUES, supervisorImage: 'none' },
        {},
        '--set-string',
        'settings.HOLDFAST_SWEEP_INTERVAL=off',
      );
      const role = objects.find(
        ({ kind, metadata }) => kind === 'Role' && metadata.name === 'holdfast-worker',
      ) as unknown as { rules: { resources: string[]; verbs: string[] }[] };
      expect(role.rules.find(({ resources }) => resources[0] === 'pods')?.verbs).toContain('patch');
    });

    test('a set of job pods has a namespace, permissions and an admission policy of its own', async () => {
      const podPolicy = { ...JOB_PODS.podPolicy, images: ['node:*'], fields: ['schedulerName'] };
      const objects = await helm.template({
        ...PLAIN_VALUES,
        ...JOB_PODS,
        podPolicy,
        namespaces: ['web'],
        admissionPolicy: { enabled: true },
        sets: [jobPodSet({ namespace: 'a-jobs' })],
      });
      const of = (kind: string, name: string): Manifest[] =>
        objects.filter((each) => each.kind === kind && each.metadata.name === name);
      const verbs = of('Role', 'holdfast-worker').map((each) => [
        each.metadata.namespace,
        Object.fromEntries(
          (each as unknown as { rules: { resources: string[]; verbs: string[] }[] }).rules.map(
            (rule) => [rule.resources[0], rule.verbs],
          ),
        ),
      ]);
      const modes = { ownsJobPods: false };
      expect(Object.fromEntries(verbs)).toEqual({
        'holdfast-runners': requiredPermissions(modes),
        web: requiredPermissions(modes),
        'a-jobs': requiredPermissions({ ownsJobPods: true }),
      });
      expect(
        of('ServiceAccount', 'holdfast-job-pods').map(({ metadata }) => metadata.namespace),
      ).toEqual(['a-jobs']);
      const name = 'holdfast-a-jobs-job-pods';
      const printed = jobPodAdmissionPolicy(
        podPolicySchema.parse(podPolicy),
        {
          images: [GITHUB_RUNNER.image.name, 'my-registry/holdfast-worker:0.1.0'],
          namespaces: [],
        },
        { name, serviceAccount: 'a-jobs/holdfast-job-pods' },
      );
      expect(
        objects
          .filter(
            ({ kind, metadata }) =>
              kind?.startsWith('ValidatingAdmission') && metadata.name?.startsWith(name),
          )
          .map(plain)
          .map(keyOf)
          .toSorted(),
      ).toEqual((printed as Manifest[]).map(keyOf).toSorted());
      const variables = (all: readonly object[]): unknown =>
        (all as { kind: string; metadata: { name: string }; spec: { variables?: unknown } }[]).find(
          ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name === name,
        )?.spec.variables;
      expect(variables(objects)).toEqual(variables(printed));
    });

    describe('sets', () => {
      let folder: string;
      beforeAll(() => {
        folder = mkdtempSync(join(tmpdir(), 'holdfast-chart-'));
      });
      afterAll(() => rmSync(folder, { recursive: true }));
      const setsOf = (objects: readonly Manifest[]): RunnerSetResource[] =>
        objects.filter(({ kind }) => kind === 'RunnerSet') as unknown as RunnerSetResource[];

      test("match what `holdfast migrate arc` converts ARC's values to", async () => {
        const modes = [
          undefined,
          { type: 'dind' },
          { type: 'kubernetes' },
          { type: 'kubernetes-novolume' },
        ];
        const template = {
          spec: {
            nodeSelector: { pool: 'ci' },
            containers: [
              { name: 'runner', image: 'my/runner:2', resources: { limits: { cpu: '2' } } },
            ],
          },
        };
        for (const [index, containerMode] of modes.entries()) {
          const name = `linux-${index}`;
          const shared = {
            githubConfigUrl: 'https://github.com/acme',
            minRunners: 1,
            maxRunners: 7,
            template,
            ...(containerMode && { containerMode }),
          };
          const file = join(folder, 'values.yaml');
          writeFileSync(
            file,
            stringify({
              ...shared,
              runnerScaleSetName: name,
              githubConfigSecret: { github_token: 'x' },
            }),
          );
          const { stdout } = await runCli(['migrate', 'arc', '-f', file, '--json']);
          const [{ set }] = (
            JSON.parse(stdout) as {
              sets: [
                {
                  set: {
                    paused?: boolean;
                    template: {
                      image?: string;
                      demand?: string;
                      scaleSet?: object;
                      pod: {
                        spec: { serviceAccountName?: string; containers: { image?: string }[] };
                      };
                    };
                  };
                },
              ];
            }
          ).sets;
          // The image may be said in two places, and the chart brings the account.
          const { image, pod, demand, scaleSet } = set.template;
          if (image !== undefined) pod.spec.containers[0] = { ...pod.spec.containers[0], image };
          delete set.template.image;
          delete set.paused; // until something was decided
          const ownsPods = containerMode?.type.startsWith('kubernetes') === true;
          if (ownsPods) {
            pod.spec.serviceAccountName = 'holdfast-job-pods';
            Object.assign(set.template, { namespace: 'jobs' });
          }
          const objects = await helm.template({
            ...PLAIN_VALUES,
            podPolicy: {
              rules: [{ sets: ['*'], images: ['docker:dind'], privileged: true }],
              serviceAccounts: ['holdfast-job-pods'],
            },
            sets: [
              {
                ...shared,
                name,
                // ARC's values do not say that the set takes a scale set over.
                set: { template: { demand, scaleSet } },
                ...(ownsPods && { containerMode: { ...containerMode, namespace: 'jobs' } }),
              },
            ],
          });
          expect(sortedLists(setsOf(objects).map(inputOf))).toEqual(sortedLists([set]));
        }
      });

      test('match the values that `holdfast migrate arc --format chart` writes', async () => {
        const file = join(folder, 'arc.yaml');
        writeFileSync(file, ARC_EXAMPLES.map((example) => stringify(example)).join('---\n'));
        const written = async (format: string): Promise<string> =>
          (await runCli(['migrate', 'arc', '-f', file, '--release', 'linux', '--format', format]))
            .stdout;
        const resources = objectsOf(await written('runnerset')).filter(
          ({ kind }) => kind === 'RunnerSet',
        );
        expect(resources.length).toBeGreaterThan(1);
        const values = parse(await written('chart')) as object;
        const rendered = setsOf(await helm.template({ ...PLAIN_VALUES, ...values }));
        expect(sortedLists(rendered.map(inputOf))).toEqual(
          sortedLists(
            (resources as unknown as RunnerSetResource[]).map((resource) => {
              const input = inputOf(resource) as { replicas?: number };
              // The chart writes the default of a set that follows demand.
              return input.replicas === undefined ? { minIdle: 0, ...input } : input;
            }),
          ),
        );
      });

      test('are in the namespace of their runners, or in that of the values, which workers watch', async () => {
        const values = {
          ...PLAIN_VALUES,
          githubConfigUrl: 'https://github.com/acme',
          runnersNamespace: 'ci-runners',
          sets: [{ name: 'a', maxRunners: 1 }],
        };
        const placesOf = async (more: object): Promise<unknown[]> => {
          const objects = await helm.template({ ...values, ...more });
          const { spec } = objects.find(({ kind }) => kind === 'Deployment') as unknown as {
            spec: {
              template: { spec: { containers: { env: { name: string; value?: string }[] }[] } };
            };
          };
          return [
            objects.find(({ kind }) => kind === 'RunnerSet')?.metadata.namespace,
            objects.find(
              ({ kind, metadata }) => kind === 'Role' && metadata.name?.endsWith('-runner-sets'),
            )?.metadata.namespace,
            spec.template.spec.containers[0]?.env.find(
              ({ name }) => name === 'HOLDFAST_RUNNER_SET_RESOURCE_NAMESPACE',
            )?.value,
          ];
        };
        expect(await placesOf({})).toEqual(Array(3).fill('ci-runners'));
        expect(await placesOf({ runnerSetNamespace: 'ci-sets' })).toEqual(Array(3).fill('ci-sets'));
        expect(await placesOf({ sets: [] })).toEqual([undefined, undefined, undefined]);
      });

      test('pass the validation of the worker that starts them, which reports errors', async () => {
        const faultsOf = (resource: RunnerSetResource): string[] => {
          const parsed = parseRunnerSetInput(inputOf(resource), {
            hash: () => '',
            checkSchedule: scheduleError,
            policy: 'elsewhere',
          });
          return parsed.ok ? [] : parsed.errors.map(({ field }) => field);
        };
        const sets = setsOf(await helm.template(FULL_VALUES));
        expect(sets.map(({ metadata }) => metadata.name)).toEqual(
          FULL_VALUES.sets.map(({ name }) => name),
        );
        expect(sets.flatMap(faultsOf)).toEqual([]);
        const wrong = await helm.template({
          ...PLAIN_VALUES,
          githubConfigUrl: 'https://github.com/acme',
          sets: [{ name: 'a', maxRunners: 1, set: { template: { labls: [] } } }],
        });
        expect(setsOf(wrong).flatMap(faultsOf)).toEqual(['template.labls']);
      });
    });
  },
);

/** Variables, mounts and volumes have no order. */
function sortedLists(value: unknown): unknown {
  const text = (each: unknown): string => stringify(each, { sortMapEntries: true });
  if (Array.isArray(value))
    return value.map(sortedLists).toSorted((a, b) => (text(a) < text(b) ? -1 : 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === 'args' || key === 'command' ? each : sortedLists(each),
    ]),
  );
}
