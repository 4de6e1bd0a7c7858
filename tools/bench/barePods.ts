/** Pods like those of the runners, created and deleted by a script: the baseline of benchmarks. */
import { setTimeout as delay } from 'node:timers/promises';
import { CoreV1Api, type V1PodSpec } from '@kubernetes/client-node';
import { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { PodCache } from '../../activities/compute/kubernetes/podCache.ts';
import { createNamespace } from './namespace.ts';
import type { BenchEnvironment } from './world.ts';
import type { PodView } from '../../core/domain/pod.ts';

interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: V1PodSpec;
}

/** Condition of a pod that a caller waits for. */
type PodCondition = 'running' | 'gone';

const LABEL = 'bench.holdfast.dev/floor';
const GIVE_UP_MS = 120_000;

/** Creates, ends and deletes copies of a runner's pod. */
export class BarePods {
  readonly #api: ApiServer;
  readonly #template: PodTemplate;
  readonly #path: string;
  readonly #cache: PodCache;
  readonly #waiting = new Map<string, () => void>();
  #count = 0;

  private constructor(api: ApiServer, template: PodTemplate, path: string) {
    this.#api = api;
    this.#template = template;
    this.#path = path;
    const resolveWait = (view: PodView, condition: PodCondition): void => {
      const key = `${condition}/${view.name}`;
      this.#waiting.get(key)?.();
      this.#waiting.delete(key);
    };
    this.#cache = new PodCache(api, {
      path,
      labelSelector: LABEL,
      isDeleted: async () => true,
      onError: (error, what) => console.error(`bare script: ${what}: ${String(error)}`),
      listener: {
        changed: (pod) => {
          if (pod.deleted) resolveWait(pod, 'gone');
          else if (pod.startedAt !== undefined) resolveWait(pod, 'running');
        },
        relisted: () => undefined,
      },
    });
  }

  /**
   * Prepares copies of a runner's pod, in a separate namespace that no worker watches.
   * @throws Error if there is no runner
   */
  static async open(world: BenchEnvironment): Promise<BarePods> {
    const kubeconfig = loadKubeConfig({ path: world.kubeconfig });
    const core = kubeconfig.makeApiClient(CoreV1Api);
    const { metadata, spec } =
      (await core.listNamespacedPod({ namespace: world.taskQueue, limit: 1 })).items[0] ?? {};
    if (spec === undefined) throw new Error('no runner exists whose pod can be copied');
    delete spec.nodeName;
    const namespace = `${world.taskQueue}-floor`;
    await createNamespace(core, namespace);
    const template = {
      labels: { ...metadata?.labels, [LABEL]: 'yes' },
      annotations: metadata?.annotations ?? {},
      spec,
    };
    const pods = new BarePods(
      new ApiServer(kubeconfig),
      template,
      `/api/v1/namespaces/${namespace}/pods`,
    );
    world.atEnd(async () => await pods.#cache.stop());
    while (!pods.#cache.synced()) await delay(10);
    return pods;
  }

  /**
   * Creates a pod and waits until it runs.
   * @returns its name
   */
  async create(): Promise<string> {
    const name = `bare-${++this.#count}`;
    const runs = this.#until(name, 'running');
    const { labels, annotations, spec } = this.#template;
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels, annotations }, spec };
    await this.#api.call({ verb: 'create', resource: 'pods', path: this.#path, body });
    await runs;
    return name;
  }

  /** Ends the container of a pod: sets the status that a kubelet would report. */
  async end(name: string): Promise<void> {
    const state = { terminated: { exitCode: 0, reason: 'Completed', finishedAt: new Date() } };
    const containerStatuses = this.#template.spec.containers.map((container) => ({
      name: container.name,
      image: container.image,
      imageID: '',
      restartCount: 0,
      ready: false,
      started: false,
      state,
    }));
    await this.#api.call({
      verb: 'patch',
      resource: 'pods',
      path: `${this.#path}/${name}/status`,
      body: { status: { phase: 'Succeeded', containerStatuses } },
    });
  }

  /** Deletes a pod and waits until it no longer exists. */
  async remove(name: string): Promise<void> {
    const gone = this.#until(name, 'gone');
    await this.#api.call({ verb: 'delete', resource: 'pods', path: `${this.#path}/${name}` });
    await gone;
  }

  async #until(name: string, condition: PodCondition): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () =>
          reject(
            new Error(
              `pod ${name} of the bare script was not ${condition} within ${GIVE_UP_MS / 1_000} s`,
            ),
          ),
        GIVE_UP_MS,
      );
      this.#waiting.set(`${condition}/${name}`, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
