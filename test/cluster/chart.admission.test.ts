/** What the chart makes, before a real API server that takes no unknown field, with the custom resources' own definitions. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ApiextensionsV1Api, CoreV1Api, CustomObjectsApi } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { CHART, FULL_VALUES, Helm, PLAIN_VALUES, type Manifest } from '../support/chart.ts';
import { runCli } from '../support/cli.ts';
import { customResourceDefinitions } from '../support/customResources.ts';
import { describeIf, ensureLab } from '../support/lab.ts';
import { StrictApi } from '../support/strictApi.ts';
import { until } from '../support/until.ts';

const prepare = async (): Promise<{ kubeconfig: string; definitions: Manifest[] }> => ({
  definitions: await customResourceDefinitions(),
  kubeconfig: (await ensureLab({ kubernetes: true })).kubernetes!.kubeconfig,
});

const INSTALL_PAGE = readFileSync('docs/install.md', 'utf8');
const GITEA_PAGE = readFileSync('docs/gitea.md', 'utf8');
const RUNNER_SETS = 'runnersets.holdfast.dev';
const DEFINITION = join(CHART, 'crds', `${RUNNER_SETS}.yaml`);

interface PodTemplate {
  readonly metadata: object;
  readonly spec: object;
}

await describeIf(
  'the chart and the API server',
  prepare,
  { kubernetes: true },
  ({ kubeconfig, definitions }) => {
    const namespace = `chart-${randomUUID().slice(0, 8)}`;
    const runnersNamespace = `${namespace}-runners`;
    /** Of the sets of {@link FULL_VALUES} whose jobs have pods. */
    const podNamespaces = ['holdfast-pods', 'holdfast-novolume'];
    const kubeConfig = loadKubeConfig({ path: kubeconfig });
    const core = kubeConfig.makeApiClient(CoreV1Api);
    const extensions = kubeConfig.makeApiClient(ApiextensionsV1Api);
    const api = new StrictApi(kubeConfig);
    let helm: Helm;
    let full: Manifest[];
    const kubectl = async (...args: readonly string[]): Promise<string> =>
      (
        await promisify(execFile)(
          await resolveBinary('kubectl', { progress: () => undefined }),
          [...args],
          { env: { ...process.env, KUBECONFIG: kubeconfig } },
        )
      ).stdout;

    beforeAll(async () => {
      helm = await Helm.find(kubeconfig);
      for (const name of [namespace, runnersNamespace])
        await core.createNamespace({
          body: {
            metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
          },
        });
      for (const definition of definitions)
        expect(await api.refusal(definition, { dryRun: false })).toBeUndefined();
      // Other tests of the same cluster may have made this one.
      await kubectl('apply', '--server-side', '--force-conflicts', '-f', DEFINITION);
      const names = [...definitions.map(({ metadata }) => metadata.name ?? ''), RUNNER_SETS];
      await until('the custom resources to be served', async () =>
        (
          await Promise.all(
            names.map(async (name) => await extensions.readCustomResourceDefinition({ name })),
          )
        ).every(({ status }) =>
          status?.conditions?.some(
            ({ type, status: state }) => type === 'Established' && state === 'True',
          ),
        ),
      );
      for (const name of podNamespaces)
        await core.createNamespace({ body: { metadata: { name } } }).catch((error: unknown) => {
          // Other tests of the same cluster may have made it.
          if ((error as { code?: number }).code !== 409) throw error;
        });
      // A namespace that is there.
      full = await helm.template(
        { ...FULL_VALUES, runnersNamespace, runnerSetNamespace: runnersNamespace },
        { namespace },
      );
      // Established is sooner than found by its kind, and than answered for.
      let unknown: string[] = [];
      await until(
        'the API server to know each kind',
        async () =>
          (unknown = (await refusals(full)).filter((refusal) => /knows no|: 404 /.test(refusal)))
            .length === 0,
        () => unknown.join('\n'),
      );
    }, 120_000);
    afterAll(async () => {
      helm.close();
      for (const { metadata } of definitions)
        await extensions.deleteCustomResourceDefinition({ name: metadata.name ?? '' });
      for (const name of [namespace, runnersNamespace]) await core.deleteNamespace({ name });
    });

    /** Of all objects. */
    async function refusals(objects: readonly Manifest[]): Promise<string[]> {
      return (await Promise.all(objects.map(async (object) => await api.refusal(object)))).filter(
        (each) => each !== undefined,
      );
    }

    test('every object is accepted, with minimal values and with all values', async () => {
      expect(new Set(full.map(({ kind }) => kind))).toEqual(
        new Set([
          'ClusterRole',
          'ClusterRoleBinding',
          'ConfigMap',
          'CronJob',
          'Deployment',
          'HTTPRoute',
          'Ingress',
          'Job',
          'NetworkPolicy',
          'PodDisruptionBudget',
          'PrometheusRule',
          'Role',
          'RoleBinding',
          'RunnerSet',
          'ScaledObject',
          'Secret',
          'Service',
          'ServiceAccount',
          'ServiceMonitor',
        ]),
      );
      // Another release has made this one's.
      expect(await refusals(full)).toEqual([]);
      expect(
        await refusals(
          await helm.template(
            { ...PLAIN_VALUES, runnersNamespace },
            { namespace, release: 'another' },
          ),
        ),
      ).toEqual([]);
      // It would say so.
      expect(
        await refusals([
          { ...full.find(({ kind }) => kind === 'Service')!, spec: { port: 1 } } as Manifest,
        ]),
      ).toEqual([expect.stringContaining('unknown field "spec.port"')]);
    });

    test('every object is accepted with the values for Gitea', async () => {
      const [, block = ''] = /```yaml\n( *# values\.yaml\n.*?)```/s.exec(GITEA_PAGE) ?? [];
      const values = parse(block.replaceAll(/^ {3}/gm, '')) as Record<string, unknown>;
      const objects = await helm.template({ ...values, runnersNamespace }, { namespace });
      expect(JSON.stringify(objects)).toMatch(/server\W+gitea/);
      expect(await refusals(objects)).toEqual([]);
    });

    test('the values for a set of a scale set are taken, and so is every object of theirs', async () => {
      const [, block = ''] =
        /```yaml\n(# values\.yaml\n[^`]*demand: scaleSet.*?)```/s.exec(INSTALL_PAGE) ?? [];
      const values = parse(block) as Record<string, unknown>;
      const objects = await helm.template({ ...values, runnersNamespace }, { namespace });
      const [set] = objects.filter(({ kind }) => kind === 'RunnerSet');
      expect(set).toMatchObject({
        spec: {
          max: 50,
          capacity: 'observed',
          template: { demand: 'scaleSet', scaleSet: { name: 'gpu-large' } },
        },
      });
      expect(JSON.stringify(objects)).toContain('resourcequotas');
      expect(await refusals(objects)).toEqual([]);
      const wrong = { ...set, spec: { ...(set as { spec?: object }).spec, capacity: 'guessed' } };
      expect(await refusals([wrong as Manifest])).toEqual([expect.stringContaining('capacity')]);
    });

    test('its pods pass Pod Security "restricted"', async () => {
      for (const account of full.filter(
        ({ kind, metadata }) => kind === 'ServiceAccount' && metadata.namespace === namespace,
      ))
        expect(await api.refusal(account, { dryRun: false })).toBeUndefined();
      await until('the default account', async () =>
        (await core.listNamespacedServiceAccount({ namespace })).items.some(
          ({ metadata }) => metadata?.name === 'default',
        ),
      );
      const templateOf = ({ kind, ...object }: Manifest): PodTemplate[] => {
        const { spec } = object as unknown as {
          spec: { template: PodTemplate; jobTemplate: { spec: { template: PodTemplate } } };
        };
        if (kind === 'CronJob') return [spec.jobTemplate.spec.template];
        return kind === 'Deployment' || kind === 'Job' ? [spec.template] : [];
      };
      const pods = full.flatMap(templateOf).map(({ metadata, spec }, index) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...metadata, name: `pod-${index}`, namespace },
        spec,
      }));
      expect(pods).toHaveLength(4);
      expect(await refusals(pods)).toEqual([]);
    });

    test('the pod policy of `holdfast pod-policy` is installed with the release, for its workers', async () => {
      const { stdout, status } = await runCli(
        ['pod-policy', '--service-account', `${namespace}/holdfast-worker`, '--name', namespace],
        { HOLDFAST_KUBERNETES_NAMESPACE: runnersNamespace },
      );
      expect(status).toBe(0);
      const objects = await helm.template(
        { ...PLAIN_VALUES, runnersNamespace, admissionPolicy: { manifest: stdout } },
        { namespace },
      );
      const policies = objects.filter(
        ({ kind }) => kind?.startsWith('ValidatingAdmissionPolicy') === true,
      );
      expect(
        policies.map(({ kind = '', metadata }) => `${kind} ${metadata.name}`).toSorted(),
      ).toEqual(
        ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].flatMap((kind) =>
          [namespace, `${namespace}-claims`, `${namespace}-secrets`].map(
            (name) => `${kind} ${name}`,
          ),
        ),
      );
      expect(await refusals(policies)).toEqual([]);
    });

    describe('sets', () => {
      const release = (): string[] => ['fleet', '--namespace', namespace];
      const values = (...sets: readonly object[]): string[] =>
        helm.values({
          ...PLAIN_VALUES,
          runnersNamespace,
          githubConfigUrl: 'https://github.com/acme',
          sets,
        });
      /** Names and sizes, as the API server has them. */
      const there = async (): Promise<Record<string, unknown>> => {
        const { items } = (await kubeConfig
          .makeApiClient(CustomObjectsApi)
          .listNamespacedCustomObject({
            group: 'holdfast.dev',
            version: 'v1alpha1',
            namespace: runnersNamespace,
            plural: 'runnersets',
          })) as { items: { metadata: { name: string }; spec: { max: number } }[] };
        return Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec.max]));
      };
      let copy: string;

      beforeAll(async () => {
        copy = join(mkdtempSync(join(tmpdir(), 'holdfast-chart-')), 'holdfast');
        cpSync(CHART, copy, { recursive: true });
        await helm.run('install', ...release(), CHART, ...values({ name: 'a', maxRunners: 1 }));
      });
      afterAll(async () => {
        await helm.run('uninstall', ...release(), '--no-hooks');
        await kubectl('apply', '--server-side', '--force-conflicts', '-f', DEFINITION);
        rmSync(join(copy, '..'), { recursive: true });
      });

      test('are resources that an upgrade changes, adds and deletes', async () => {
        expect(await there()).toEqual({ a: 1 });
        const more = [
          { name: 'a', maxRunners: 2 },
          { name: 'b.c', maxRunners: 3 },
        ] as const;
        await helm.run('upgrade', ...release(), CHART, ...values(...more));
        expect(await there()).toEqual({ a: 2, 'b.c': 3 });
        await helm.run('upgrade', ...release(), CHART, ...values({ name: 'a', maxRunners: 2 }));
        expect(await there()).toEqual({ a: 2 });
      });

      test('are not created if their definition is older than the chart: the error has the command that fixes it', async () => {
        const file = join(copy, 'crds', `${RUNNER_SETS}.yaml`);
        writeFileSync(
          file,
          readFileSync(file, 'utf8').replace(/(holdfast\.dev\/revision: ')\d+/, '$1999'),
        );
        const upgrade = async (): Promise<unknown> =>
          await helm.run('upgrade', ...release(), copy, ...values({ name: 'a', maxRunners: 4 }));
        const refusal = await upgrade().then(
          () => '',
          (error: Error) => error.message,
        );
        expect(refusal).toMatch(/has revision \d+ and this chart needs 999/);
        const [command = ''] = /helm show crds CHART.*?-f -/.exec(refusal) ?? [];
        const [show = '', apply = ''] = command.split(' | ');
        const shown = join(copy, 'shown.yaml');
        writeFileSync(
          shown,
          (await helm.run(...show.replace('CHART', copy).split(' ').slice(1))).stdout,
        );
        await kubectl(...apply.replace('-f -', `-f ${shown}`).split(' ').slice(1));
        await upgrade();
        expect(await there()).toEqual({ a: 4 });
      });

      test('are not created if their definition is missing', async () => {
        const other = join(copy, '..', 'missing');
        cpSync(CHART, other, { recursive: true });
        // As if the definition had this name.
        renameSync(
          join(other, 'crds', `${RUNNER_SETS}.yaml`),
          join(other, 'crds', 'missing.holdfast.dev.yaml'),
        );
        const template = join(other, 'templates', '_sets.tpl');
        writeFileSync(
          template,
          readFileSync(template, 'utf8').replace(RUNNER_SETS, 'missing.holdfast.dev'),
        );
        await expect(
          helm.run('upgrade', ...release(), other, ...values({ name: 'a', maxRunners: 5 })),
        ).rejects.toThrow('missing.holdfast.dev has revision 0 and this chart needs');
      });
    });

    test('a missing namespace of runners is an error with its fix, before anything is installed', async () => {
      const missing = `${namespace}-missing`;
      const install = helm.run(
        'install',
        'holdfast',
        CHART,
        '--namespace',
        namespace,
        ...helm.values({ ...PLAIN_VALUES, runnersNamespace: missing }),
      );
      await expect(install).rejects.toThrow(
        `kubectl create namespace ${missing} && kubectl label namespace ${missing} pod-security.kubernetes.io/enforce=restricted`,
      );
      expect((await core.listNamespacedSecret({ namespace })).items).toEqual([]);
    });
  },
);
