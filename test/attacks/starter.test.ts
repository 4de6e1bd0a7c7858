/** Whoever may start a workflow wants the cluster, or another's runners: by a runner's input, and by activities that a workflow of their own calls. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createCiServers, parseCredentials } from '../../activities/ciServers/index.ts';
import type { KubernetesCompute } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import type { CiServers } from '../../activities/ports/ciServer.ts';
import type { ProvisionInput, RemoveRegistrationInput } from '../../core/activities/index.ts';
import { ciTaskQueue, clusterTaskQueue } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import type { PodTemplate } from '../../core/domain/pod.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import {
  HARNESS_POLICY,
  startKubernetesHarness,
  type KubernetesHarness,
} from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import {
  rejectionReason,
  startUntrustedWorker,
  type UntrustedWorker,
} from '../support/untrustedWorker.ts';

process.env['HOLDFAST_STARTER_TOKEN'] = 'ghp_simulator';
const RIVAL: Scope = { kind: 'organization', name: 'rival' };

const pod = (spec: PodTemplate['spec']): PodTemplate => ({
  spec: { schedulerName: 'contract', ...spec },
});
const runner = (container: object): PodTemplate =>
  pod({ containers: [{ name: 'runner', ...container }] });

/** What each wants, and the rule that is in its way. */
const WANTED: readonly (readonly [what: string, template: PodTemplate, rule: string])[] = [
  [
    "the worker's own service account",
    pod({ serviceAccountName: 'holdfast-worker', automountServiceAccountToken: true }),
    'serviceAccounts',
  ],
  [
    "the Secret with the worker's credential",
    runner({
      env: [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'github', key: 'token' } } }],
    }),
    'secrets',
  ],
  ["the node's disk", pod({ volumes: [{ name: 'disk', hostPath: { path: '/' } }] }), 'hostPaths'],
  ["the node's network", pod({ hostNetwork: true }), 'host'],
  ['the node itself', runner({ securityContext: { privileged: true } }), 'privileged'],
  ['an image of their own', runner({ image: 'evil:1' }), 'images'],
  ['the place of others', pod({ priorityClassName: 'system-node-critical' }), 'priorityClasses'],
  ['a node of their choice', pod({ nodeName: 'control-plane' }), 'fields'],
  ['every node', pod({ tolerations: [{ operator: 'Exists' }] }), 'tolerations'],
  [
    "a cloud role, by a pod's annotation",
    { ...pod({}), metadata: { annotations: { 'iam.amazonaws.com/role': 'admin' } } },
    'annotations',
  ],
];

await describeWithLab(
  'users who can start workflows',
  { temporal: true, kubernetes: true },
  (lab) => {
    let harness: KubernetesHarness;
    let simulator: Simulator;
    let compute: KubernetesCompute;
    let ciServers: CiServers;
    let world: HoldfastWorld;
    let untrusted: UntrustedWorker;

    beforeAll(async () => {
      const address = lab.temporal?.address ?? '';
      harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
      simulator = await startSimulator();
      compute = harness.instance({ policy: HARNESS_POLICY });
      ciServers = createCiServers(
        parseCredentials({
          default: {
            type: 'pat',
            tokenEnv: 'HOLDFAST_STARTER_TOKEN',
            apiUrl: simulator.url,
            scopes: ['acme'],
          },
          bound: {
            type: 'pat',
            tokenEnv: 'HOLDFAST_STARTER_TOKEN',
            apiUrl: simulator.url,
            groups: ['1'],
            labels: ['ci-*'],
          },
        }),
      );
      world = await holdfastWorld(address, { compute, ciServers }, ['default', 'bound']);
      untrusted = await startUntrustedWorker(address, world.client);
    }, 300_000);
    afterAll(async () => {
      await untrusted.close();
      await world.close();
      await simulator.stop();
      await harness.close();
    });

    async function call(
      activity: string,
      taskQueue: string,
      input: (workflowId: string) => ProvisionInput | RemoveRegistrationInput,
    ): Promise<string> {
      const location = await compute.location();
      return await untrusted.call(activity, taskQueue, (workflowId: string) => ({
        location,
        ...input(workflowId),
      }));
    }
    const provisioning =
      (template: PodTemplate, more: Partial<ProvisionInput> = {}) =>
      (workflowId: string): ProvisionInput => ({
        runnerName: 'runner-x',
        pod: { ...harness.request({ ...harness.newIdentity(), workflowId }), template },
        credentialsRetryMs: 1_000,
        completeWithinMs: 1_000,
        ...more,
      });

    async function expectNothingMade(): Promise<void> {
      const { core, namespace } = harness;
      const [pods, secrets] = await Promise.all([
        core.listNamespacedPod({ namespace }),
        core.listNamespacedSecret({ namespace }),
      ]);
      expect({
        pods: pods.items.length,
        secrets: secrets.items.length,
        requests: simulator.requests(),
      }).toEqual({ pods: 0, secrets: 0, requests: [] });
    }

    describe.each(WANTED)('do not get %s', (_what, template, rule) => {
      test('in the input of a runner', async () => {
        const run = await world.start({ pod: template });
        expect(await rejectionReason(run.result())).toContain(`not allowed by "${rule}"`);
        await expectNothingMade();
      });
      test('by a workflow of their own', async () => {
        expect(
          await call('provision', clusterTaskQueue(world.taskQueue), provisioning(template)),
        ).toContain(`not allowed by "${rule}"`);
        await expectNothingMade();
      });
    });

    describe("cannot use the worker's credential for anything else", () => {
      const queue = (): string => ciTaskQueue(world.taskQueue, 'default');
      test('in the input of a runner', async () => {
        const run = await world.start({ organization: RIVAL.name });
        expect(await rejectionReason(run.result())).toContain(
          'credential "default" is not for rival',
        );
        await expectNothingMade();
      });
      test('by a workflow of their own: neither to register nor to remove a runner', async () => {
        const registration = {
          scope: RIVAL,
          labels: [],
          group: 'default',
          ephemeral: true,
          mode: 'jit',
        } as const;
        expect(
          await call(
            'provision',
            queue(),
            provisioning(pod({}), { ciServer: { credential: 'default', registration } }),
          ),
        ).toContain('is not for rival');
        const removal: RemoveRegistrationInput = {
          scope: RIVAL,
          credential: 'default',
          runner: { id: '1', name: 'x' },
          onBusy: 'return',
          credentialsRetryMs: 1_000,
        };
        expect(await call('removeRegistration', queue(), () => removal)).toContain(
          'is not for rival',
        );
        await expectNothingMade();
      });
      test.each<[what: string, asked: object, registered: object, why: string]>([
        [
          'for a label that it is not for',
          { labels: ['prod-deploy'] },
          { labels: ['prod-deploy'], ephemeral: true, mode: 'jit' },
          'is not for the label "prod-deploy"',
        ],
        [
          'for a token that is good for every group',
          { labels: ['ci-a'], ephemeral: false },
          { labels: ['ci-a'], ephemeral: false, mode: 'token' },
          'is for some runner groups only',
        ],
      ])('cannot use it for %s', async (_what, asked, registered, why) => {
        const run = await world.start({ ...asked, credential: 'bound' });
        expect(await rejectionReason(run.result())).toContain(why);
        const scope: Scope = { kind: 'organization', name: 'acme' };
        const registration = { scope, group: 'default', ...registered } as NonNullable<
          ProvisionInput['ciServer']
        >['registration'];
        expect(
          await call(
            'provision',
            ciTaskQueue(world.taskQueue, 'bound'),
            provisioning(pod({}), { ciServer: { credential: 'bound', registration } }),
          ),
        ).toContain(why);
        await expectNothingMade();
      });
      test("by a workflow of their own: cannot remove registrations that are not Holdfast's", async () => {
        const scope: Scope = { kind: 'organization', name: 'acme' };
        const { runnerId: id } = await ciServers.get('default').register({
          scope,
          name: 'their-big-runner',
          labels: ['linux'],
          group: 'default',
          ephemeral: true,
          mode: 'jit',
        });
        for (const name of ['their-big-runner', 'linux-0123456789']) {
          const removal: RemoveRegistrationInput = {
            scope,
            credential: 'default',
            runner: { name, ...omitUndefined({ id }) },
            onBusy: 'return',
            credentialsRetryMs: 1_000,
          };
          expect(await call('removeRegistration', queue(), () => removal)).toContain(
            'nothing was removed',
          );
        }
        expect(simulator.runner('their-big-runner')).toBeDefined();
      });
    });
  },
);
