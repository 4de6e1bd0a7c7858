/** The pods of the runners without anything that cares for them: what a bare script is measured with. */
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

type Wanted = 'running' | 'gone';

const LABEL = 'bench.holdfast.dev/floor';
const GIVE_UP_MS = 120_000;

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
    const told = (view: PodView, wanted: Wanted): void => {
      const key = `${wanted}/${view.name}`;
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
          if (pod.deleted) told(pod, 'gone');
          else if (pod.startedAt !== undefined) told(pod, 'running');
        },
        relisted: () => undefined,
      },
    });
  }

  /** Copies a pod of the world's runners, of which one must be there; made in a namespace of their own, where nobody else looks. */
  static async open(world: BenchEnvironment): Promise<BarePods> {
    const kubeconfig = loadKubeConfig({ path: world.kubeconfig });
    const core = kubeconfig.makeApiClient(CoreV1Api);
    const { metadata, spec } =
      (await core.listNamespacedPod({ namespace: world.taskQueue, limit: 1 })).items[0] ?? {};
    if (spec === undefined) throw new Error('there is no runner whose pod could be copied');
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

  /** Makes one. @returns its name, when it runs */
  async create(): Promise<string> {
    const name = `bare-${++this.#count}`;
    const runs = this.#is(name, 'running');
    const { labels, annotations, spec } = this.#template;
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels, annotations }, spec };
    await this.#api.call({ verb: 'create', resource: 'pods', path: this.#path, body });
    await runs;
    return name;
  }

  /** Its container ends, as the kubelet reports it. */
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

  /** Deletes it, and waits until it is gone. */
  async remove(name: string): Promise<void> {
    const gone = this.#is(name, 'gone');
    await this.#api.call({ verb: 'delete', resource: 'pods', path: `${this.#path}/${name}` });
    await gone;
  }

  async #is(name: string, wanted: Wanted): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () =>
          reject(
            new Error(
              `pod ${name} of the bare script was not ${wanted} within ${GIVE_UP_MS / 1_000} s`,
            ),
          ),
        GIVE_UP_MS,
      );
      this.#waiting.set(`${wanted}/${name}`, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
