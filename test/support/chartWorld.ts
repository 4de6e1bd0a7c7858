/**
 * Holdfast installed by its chart on the lab's kubelet: workers and webhook are pods with only what
 * the chart gives them.
 */
import { randomUUID } from 'node:crypto';
import { DiscoveryV1Api, type V1Pod } from '@kubernetes/client-node';
import { Client, Connection } from '@temporalio/client';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { addImages, type LabState } from '../../tools/lab/lab.ts';
import {
  RUNNER_IMAGE,
  WORKER_REPOSITORY,
  workerImage,
} from '../../tools/lab/images/definitions.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { CHART, Helm } from './chart.ts';
import { SHORT_INTERVALS } from './clusterRun.ts';
import { recordNamespace, type NamespaceRecorder } from './namespaceRecorder.ts';
import { createTestNamespace, testNamespace, type TestNamespace } from './pods.ts';
import { Relay } from './relay.ts';
import { SHORT_SET_INTERVALS } from './setRun.ts';
import { terminateAll } from './terminateAll.ts';
import { untilSeen } from './until.ts';

export const RELEASE = 'holdfast';
export const WEBHOOK_SECRET = randomUUID();

/** Names that the user of the chart has chosen and created. */
export interface Installed {
  readonly home: string;
  readonly runners: string;
  readonly taskQueue: string;
}

/** Name of the Secret with GitHub's token, for the worker. */
export const CHART_TOKEN = 'ghp_chart';
/** Fields that Pod Security requires for images other than GitHub's. */
export const RUNNER_SECURITY = {
  securityContext: { runAsNonRoot: true, runAsUser: 1001 },
} as const;

async function makeNamespaces(kubeconfig: string): Promise<[TestNamespace, TestNamespace]> {
  const id = randomUUID().slice(0, 6);
  const made = await Promise.all([
    createTestNamespace(kubeconfig, `chart-${id}`),
    createTestNamespace(kubeconfig, `chart-runners-${id}`),
  ]);
  for (const { core, name } of made)
    await core.patchNamespace({
      name,
      body: [
        {
          op: 'add',
          path: '/metadata/labels/pod-security.kubernetes.io~1enforce',
          value: 'restricted',
        },
      ],
    });
  const [{ core, name: namespace }] = made;
  await core.createNamespacedSecret({
    namespace,
    body: { metadata: { name: 'holdfast-webhook' }, stringData: { secret: WEBHOOK_SECRET } },
  });
  return made;
}

export class ChartWorld {
  readonly helm: Helm;
  readonly client: Client;
  readonly simulator: Simulator;
  /** Namespace of the release. */
  readonly home: TestNamespace;
  /** Namespace of the runners. */
  readonly runners: TestNamespace;
  readonly recorder: NamespaceRecorder;
  readonly taskQueue: string;
  readonly #relays: readonly Relay[];
  readonly #connection: Connection;
  readonly #values: Readonly<Record<string, unknown>>;

  private constructor(
    parts: Pick<ChartWorld, 'helm' | 'simulator' | 'home' | 'runners' | 'recorder' | 'taskQueue'>,
    connection: Connection,
    host: string,
    relays: { temporal: Relay; kubernetes: Relay },
  ) {
    this.helm = parts.helm;
    this.simulator = parts.simulator;
    this.home = parts.home;
    this.runners = parts.runners;
    this.recorder = parts.recorder;
    this.#connection = connection;
    this.client = new Client({ connection });
    this.taskQueue = parts.taskQueue;
    this.#relays = Object.values(relays);
    this.#values = {
      image: { repository: WORKER_REPOSITORY },
      temporal: { address: `${host}:${relays.temporal.port}`, namespace: 'default' },
      taskQueue: this.taskQueue,
      installation: parts.runners.name,
      runnersNamespace: parts.runners.name,
      githubConfigUrl: 'https://github.com/acme',
      githubConfigSecret: { github_token: CHART_TOKEN },
      runnerImage: RUNNER_IMAGE,
      settings: {
        HOLDFAST_GITHUB_URL: this.simulator.url,
        HOLDFAST_RUNNER_COMMAND: JSON.stringify(GITHUB_RUNNER.image.command),
        HOLDFAST_SHUTDOWN_GRACE_TIME: '2s',
        HOLDFAST_SHUTDOWN_FORCE_TIME: '5s',
      },
      worker: {
        // The cluster has neither kube-proxy nor DNS: a host alias maps a name of the API server's
        // certificate to an address that pods reach.
        podSpec: { hostAliases: [{ ip: host, hostnames: ['kubernetes.default.svc'] }] },
        env: [
          { name: 'KUBERNETES_SERVICE_HOST', value: 'kubernetes.default.svc' },
          { name: 'KUBERNETES_SERVICE_PORT', value: String(relays.kubernetes.port) },
        ],
        resources: { requests: { cpu: '100m', memory: '256Mi' } },
      },
      webhook: { enabled: true, resources: { requests: { cpu: '50m', memory: '128Mi' } } },
      hooks: { resources: { requests: { cpu: '50m', memory: '128Mi' } } },
    };
  }

  /**
   * @param installed - names to use; default: namespaces of its own, which are created, with a
   * Secret for the webhook
   */
  static async open(
    lab: LabState,
    tags: readonly string[],
    installed?: Installed,
  ): Promise<ChartWorld> {
    const { kubernetes, temporal, hostAddress: host = '' } = lab;
    const kubeconfig = kubernetes?.kubeconfig ?? '';
    const helm = await Helm.find(kubeconfig);
    await addImages(lab.stateDir, tags.map(workerImage), (line) =>
      process.stderr.write(`[lab] ${line}\n`),
    );
    const [home, runners] = installed
      ? ([installed.home, installed.runners].map((name) => testNamespace(kubeconfig, name)) as [
          TestNamespace,
          TestNamespace,
        ])
      : await makeNamespaces(kubeconfig);
    const simulator = await startSimulator({
      host,
      tokens: [{ name: 'default', token: CHART_TOKEN }],
    });
    const recorder = await recordNamespace(runners.kubeConfig, runners.core, runners.name);
    const relays = {
      temporal: await Relay.open(host, new URL(`tcp://${temporal?.address ?? ''}`)),
      kubernetes: await Relay.open(host, new URL(kubernetes?.server ?? '')),
    };
    return new ChartWorld(
      { helm, simulator, home, runners, recorder, taskQueue: installed?.taskQueue ?? runners.name },
      await Connection.connect({ address: temporal?.address ?? '' }),
      host,
      relays,
    );
  }

  /** Returns the values of this machine, and those that all tests share. */
  values(
    tag: string,
    more: Readonly<Record<string, unknown>> = {},
  ): Readonly<Record<string, unknown>> {
    return { ...this.#values, ...more, image: { repository: WORKER_REPOSITORY, tag } };
  }

  /** `helm install` or `helm upgrade`, with --wait: until pods are ready and hooks done. */
  async bring(
    command: 'install' | 'upgrade',
    tag: string,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const values = this.values(tag, more);
    try {
      return (
        await this.helm.run(
          command,
          RELEASE,
          CHART,
          '--namespace',
          this.home.name,
          '--wait',
          '--timeout',
          '240s',
          ...this.helm.values(values),
        )
      ).stdout;
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.told()}`, { cause: error });
    }
  }

  /**
   * Returns a set for the chart's values, with short intervals, and with the user that Pod Security
   * requires for images other than GitHub's.
   */
  set(name: string, more: object): object {
    return {
      name,
      ...more,
      template: { spec: RUNNER_SECURITY },
      set: {
        scaleDownDelay: '1s',
        intervals: SHORT_SET_INTERVALS,
        template: { intervals: SHORT_INTERVALS },
      },
    };
  }

  /** The release's pods of a part: `worker`, `webhook`, … */
  async pods(part: string): Promise<V1Pod[]> {
    const { items } = await this.home.core.listNamespacedPod({
      namespace: this.home.name,
      labelSelector: `app=${RELEASE}-${part}`,
    });
    return items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  }

  /**
   * Sends GitHub's webhook to the pods of the Service.
   * @returns the names of the pods
   */
  async leadWebhook(secret: string = WEBHOOK_SECRET): Promise<string[]> {
    const { names, url } = await this.webhook();
    this.simulator.setWebhook({ url: `${url}/webhooks/github`, secret });
    return names;
  }

  /** Waits until both pods of the webhook are ready. Returns their names, and the URL of one. */
  async webhook(): Promise<{ readonly names: string[]; readonly url: string }> {
    const discovery = this.home.kubeConfig.makeApiClient(DiscoveryV1Api);
    const ready = await untilSeen(
      'the Service to have two ready pods',
      async () => {
        const { items } = await discovery.listNamespacedEndpointSlice({
          namespace: this.home.name,
          labelSelector: `kubernetes.io/service-name=${RELEASE}-webhook`,
        });
        return items.flatMap(({ endpoints = [], ports }) =>
          endpoints
            .filter(({ conditions }) => conditions?.ready === true)
            .map((endpoint) => ({ endpoint, port: ports?.[0]?.port })),
        );
      },
      ({ length }) => length === 2,
    );
    return {
      names: ready.map(({ endpoint }) => endpoint.targetRef?.name ?? '').toSorted(),
      url: `http://${ready[0]?.endpoint.addresses[0]}:${ready[0]?.port}`,
    };
  }

  /** Returns the ids of the workflows that run on the release's task queue. */
  async running(): Promise<string[]> {
    const ids: string[] = [];
    for await (const { workflowId } of this.client.workflow.list({
      query: `TaskQueue = '${this.taskQueue}' AND CloseTime IS NULL`,
    }))
      ids.push(workflowId);
    return ids.toSorted();
  }

  /**
   * Describes the state for a failure message: what workflows wait for, and the last log lines of
   * every pod of the release.
   */
  async told(): Promise<string> {
    const workflows = (await this.running()).map(async (id) => {
      const { raw } = await this.client.workflow.getHandle(id).describe();
      return `${id}: ${(raw.pendingActivities ?? []).map(({ activityType, lastFailure }) => `${activityType?.name}: ${lastFailure?.message}`).join('; ')}`;
    });
    const { core, name: namespace } = this.home;
    const { items } = await core.listNamespacedPod({ namespace });
    const each = items.map(async ({ metadata, status }) => {
      const log = await core
        .readNamespacedPodLog({ namespace, name: metadata?.name ?? '', tailLines: 20 })
        .catch((error: unknown) => String(error));
      return `${metadata?.name}: ${status?.phase} ${JSON.stringify(status?.containerStatuses?.map(({ state }) => state))}\n${log}`;
    });
    return (await Promise.all([...workflows, ...each])).join('\n');
  }

  async close(): Promise<void> {
    await this.helm.run(
      'uninstall',
      RELEASE,
      '--namespace',
      this.home.name,
      '--no-hooks',
      '--ignore-not-found',
    );
    this.helm.close();
    await terminateAll(this.client, this.taskQueue);
    await this.recorder.stop();
    await this.simulator.stop();
    for (const relay of this.#relays) relay.close();
    await this.#connection.close();
    await Promise.all([this.home.remove(), this.runners.remove()]);
  }
}
