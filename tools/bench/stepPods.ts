/** Times of the pods of steps, to the millisecond. Kubernetes itself reports whole seconds. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import {
  Log,
  makeInformer,
  type CoreV1Api,
  type KubeConfig,
  type V1ContainerState,
  type V1Pod,
} from '@kubernetes/client-node';
import { RUNNER_CONTAINER } from '../../core/domain/podTemplate.ts';
import type { TaskTimes } from './processes/taskTimes.ts';

/** Times in ms since the epoch. */
export interface StepTimes {
  /** First event of the pod in the watch. */
  readonly createdAt: number;
  /** Start of the step's container, which is that of tini, just before the supervisor. */
  readonly startedAt: number;
  /** Time when the container runtime read the first line of the command. */
  readonly firstLineAt: number;
  /** End of the command, according to the supervisor's record. */
  readonly endedAt: number;
}

interface Seen {
  readonly createdAt: number;
  readonly firstVersion: V1Pod;
  firstLineAt?: Promise<number>;
  last: V1Pod;
}

const GIVE_UP_MS = 120_000;

const stateOf = ({ status }: V1Pod): V1ContainerState | undefined =>
  status?.containerStatuses?.find(({ name }) => name === RUNNER_CONTAINER)?.state;

/** Watches all pods of a namespace, from before the first one. */
export class StepPods {
  readonly #kubeconfig: KubeConfig;
  readonly #namespace: string;
  readonly #tasks: TaskTimes;
  readonly #informer: ReturnType<typeof makeInformer<V1Pod>>;
  readonly #seen = new Map<string, Seen>();
  readonly #waiting = new Set<() => void>();

  private constructor(
    kubeconfig: KubeConfig,
    core: CoreV1Api,
    namespace: string,
    tasks: TaskTimes,
  ) {
    this.#kubeconfig = kubeconfig;
    this.#namespace = namespace;
    this.#tasks = tasks;
    this.#informer = makeInformer<V1Pod>(
      kubeconfig,
      `/api/v1/namespaces/${namespace}/pods`,
      async () => await core.listNamespacedPod({ namespace }),
    );
    for (const event of ['add', 'update', 'delete'] as const)
      this.#informer.on(event, (pod) => this.#onPod(pod));
  }

  /**
   * Starts the watch.
   * @param tasks - container times of the node's runtime
   */
  static async open(
    kubeconfig: KubeConfig,
    core: CoreV1Api,
    namespace: string,
    tasks: TaskTimes,
  ): Promise<StepPods> {
    const pods = new StepPods(kubeconfig, core, namespace, tasks);
    await pods.#informer.start();
    return pods;
  }

  #onPod(pod: V1Pod): void {
    const name = pod.metadata?.name ?? '';
    const seen = this.#seen.get(name) ?? { createdAt: Date.now(), firstVersion: pod, last: pod };
    seen.last = pod;
    this.#seen.set(name, seen);
    const state = stateOf(pod);
    if (seen.firstLineAt === undefined && (state?.running ?? state?.terminated) !== undefined) {
      seen.firstLineAt = this.#firstLine(name);
      seen.firstLineAt.catch(() => undefined); // thrown by times()
    }
    for (const check of this.#waiting) check();
  }

  async #firstLine(name: string): Promise<number> {
    const stream = new PassThrough();
    await new Log(this.#kubeconfig).log(this.#namespace, name, RUNNER_CONTAINER, stream, {
      follow: true,
      timestamps: true,
    });
    // The stream ends with the container.
    const [line] = (await once(createInterface({ input: stream }), 'line')) as [string];
    return Date.parse(line.slice(0, line.indexOf(' ')));
  }

  /** Waits until the step's container has ended, according to the watch. */
  async ended(name: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => finish(reject, new Error(`pod ${name} did not end within ${GIVE_UP_MS / 1_000} s`)),
        GIVE_UP_MS,
      );
      const check = (): void => {
        const seen = this.#seen.get(name);
        if (seen !== undefined && stateOf(seen.last)?.terminated !== undefined) finish(resolve);
      };
      const finish = <T extends unknown[]>(settle: (...args: T) => void, ...args: T): void => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        settle(...args);
      };
      this.#waiting.add(check);
      check();
    });
  }

  /** Returns the pod as it was created. */
  made(name: string): V1Pod {
    return this.#of(name).firstVersion;
  }

  /** Returns the times of a pod that has ended. */
  async times(name: string): Promise<StepTimes> {
    const { createdAt, last, firstLineAt } = this.#of(name);
    const { terminated } = stateOf(last) ?? {};
    const { endedAt } = JSON.parse(terminated?.message ?? '{}') as { endedAt?: string };
    if (terminated?.exitCode !== 0 || endedAt === undefined || firstLineAt === undefined)
      throw new Error(`pod ${name}: must be a step that succeeded: ${JSON.stringify(last.status)}`);
    const { startedAt } = await this.#tasks.of(terminated.containerID ?? '');
    return { createdAt, startedAt, firstLineAt: await firstLineAt, endedAt: Date.parse(endedAt) };
  }

  async close(): Promise<void> {
    await this.#informer.stop();
  }

  #of(name: string): Seen {
    const seen = this.#seen.get(name);
    if (seen === undefined) throw new Error(`pod ${name}: not seen by the watch`);
    return seen;
  }
}
