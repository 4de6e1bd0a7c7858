/** What a runner's pod may do without a word of its template, and the manifests around it, before a real API server. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  CoreV1Api,
  KubernetesObjectApi,
  type KubernetesObject,
  type V1NetworkPolicy,
  type V1Pod,
  type V1PodTemplateSpec,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';
import type { PodTemplate, SupervisorConfig } from '../../core/domain/pod.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const SUPERVISION: SupervisorConfig = {
  runnerKind: 'github',
  ephemeral: false,
  onTerm: 'stop',
  drainTimeoutMs: 0,
  signalTimeoutMs: 1,
  cleanupTimeoutMs: 1,
  signalTarget: 'group',
  startupTimeoutMs: 1,
};

await describeWithLab(
  'a namespace that accepts restricted pods only',
  { kubernetes: true },
  (lab) => {
    const id = `restricted-${randomUUID().slice(0, 8)}`;
    const namespaces = new Map([
      ['holdfast', `${id}-w`],
      ['holdfast-runners', id],
    ]);
    let core: CoreV1Api;
    let objects: KubernetesObjectApi;

    /** The manifest of an installation, in namespaces of this test. */
    async function manifest(): Promise<KubernetesObject[]> {
      const text = await readFile(new URL('../../deploy/namespaces.yaml', import.meta.url), 'utf8');
      return parseAllDocuments(
        text.replaceAll(
          /(name|namespace): (holdfast|holdfast-runners)$/gm,
          (_all, field: string, name: string) => `${field}: ${namespaces.get(name)}`,
        ),
      ).map((document) => document.toJS() as KubernetesObject);
    }

    beforeAll(async () => {
      const kubeConfig = loadKubeConfig({ path: lab.kubernetes!.kubeconfig });
      core = kubeConfig.makeApiClient(CoreV1Api);
      objects = kubeConfig.makeApiClient(KubernetesObjectApi);
      // The client knows the word `from` by another name.
      for (const object of await manifest())
        await objects.create(
          JSON.parse(JSON.stringify(object).replaceAll('"from":', '"_from":')) as KubernetesObject,
        );
      for (const namespace of namespaces.values())
        await until('the namespace to have its account', async () =>
          (await core.listNamespacedServiceAccount({ namespace })).items.some(
            ({ metadata }) => metadata?.name === 'default',
          ),
        );
    });
    afterAll(async () => {
      for (const name of namespaces.values()) await core.deleteNamespace({ name });
    });

    /** @returns what the API server has against it */
    async function refusal(pod: V1Pod, namespace = id): Promise<string | undefined> {
      try {
        await core.createNamespacedPod({ namespace, body: pod, dryRun: 'All' });
        return undefined;
      } catch (error) {
        return String((error as { body?: unknown }).body ?? error);
      }
    }

    const pod = (template?: PodTemplate, keys = ['RUNNER_TOKEN']): V1Pod => {
      const identity = { workflowId: 'w', firstRunId: randomUUID(), attempt: 1 };
      const request = {
        identity,
        labels: {},
        terminationGracePeriodSeconds: 30,
        supervision: SUPERVISION,
        ...(template && { template }),
      };
      const defaults = {
        image: GITHUB_RUNNER.image.name,
        command: GITHUB_RUNNER.image.command,
        user: GITHUB_RUNNER.image.user,
        supervisor: { image: 'worker' },
      };
      return podSpec(request, defaults, 'holdfast', { secretName: 's', keys });
    };
    const runner = (securityContext: object): PodTemplate => ({
      spec: { containers: [{ name: 'runner', securityContext }] },
    });

    test('accepts a static runner, its registration and the init container of its supervisor', async () => {
      expect(pod().spec!.initContainers!.map(({ name }) => name)).toEqual([
        'holdfast-supervisor',
        'holdfast-register',
      ]);
      expect(await refusal(pod())).toBeUndefined();
    });

    test('accepts an ephemeral runner', async () => {
      expect(await refusal(pod(undefined, ['ACTIONS_RUNNER_INPUT_JITCONFIG']))).toBeUndefined();
    });

    test.each<[string, PodTemplate, string]>([
      ['sudo', runner({ allowPrivilegeEscalation: true }), 'allowPrivilegeEscalation'],
      ['root', runner({ runAsUser: 0, runAsNonRoot: false }), 'runAsNonRoot'],
      ['a capability', runner({ capabilities: { add: ['NET_ADMIN'] } }), 'capabilities'],
      ['a privileged container', runner({ privileged: true }), 'privileged'],
      [
        'another profile',
        { spec: { securityContext: { seccompProfile: { type: 'Unconfined' } } } },
        'seccompProfile',
      ],
    ])(
      'rejects a template that asks for %s by Pod Security alone: Holdfast does not change the template',
      async (_what, template, named) => {
        const text = await refusal(pod(template));
        expect(text).toContain('violates PodSecurity');
        expect(text).toContain(named);
      },
    );

    test.each([
      ['worker', 'Deployment'],
      ['sweep', 'CronJob'],
    ])('accepts the %s, whose root file system is read-only', async (name, wanted) => {
      const documents = parseAllDocuments(
        await readFile(new URL(`../../deploy/${name}.yaml`, import.meta.url), 'utf8'),
      ).map(
        (document) =>
          document.toJS() as {
            kind: string;
            spec: {
              template?: V1PodTemplateSpec;
              jobTemplate?: { spec: { template: V1PodTemplateSpec } };
            };
          },
      );
      const { spec } = documents.find(({ kind }) => kind === wanted)!;
      const { serviceAccountName, ...podOf } = (spec.template ?? spec.jobTemplate!.spec.template)
        .spec!;
      expect(serviceAccountName).toMatch(/^holdfast-/);
      expect(
        podOf.containers.map(({ securityContext }) => securityContext?.readOnlyRootFilesystem),
      ).toEqual([true]);
      expect(
        await refusal({ metadata: { name: 'a' }, spec: podOf }, namespaces.get('holdfast')),
      ).toBeUndefined();
    });

    test('accepts the network policies as they are written', async () => {
      const policies = (await manifest()).filter(
        ({ kind }) => kind === 'NetworkPolicy',
      ) as V1NetworkPolicy[];
      const named = policies.map(
        ({ metadata, spec }) => [metadata!.name!, spec as object] as const,
      );
      const stored = await Promise.all(
        policies.map(async ({ metadata }) => {
          const { spec } = (await objects.read({
            apiVersion: 'networking.k8s.io/v1',
            kind: 'NetworkPolicy',
            metadata: { name: metadata!.name!, namespace: metadata!.namespace! },
          })) as V1NetworkPolicy;
          const asWritten = JSON.parse(
            JSON.stringify(spec).replaceAll('"_from":', '"from":'),
          ) as object;
          return [metadata!.name!, { ingress: [], ...asWritten }] as const;
        }),
      );
      expect(stored.length).toBeGreaterThan(0);
      // Of an empty list the API server keeps nothing.
      expect(stored).toEqual(named.map(([name, spec]) => [name, { ingress: [], ...spec }]));
    });
  },
);
