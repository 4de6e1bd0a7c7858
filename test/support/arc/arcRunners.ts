/**
 * Simulates the runners in ARC's pods, on nodes that run nothing. Each registers with the data of
 * its pod, and its pod ends with it.
 */
import {
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type CoreV1Api,
  type KubeConfig,
  type V1Pod,
} from '@kubernetes/client-node';
import { Fleet } from '../../../tools/simulator/fleet.ts';
import type { SimulatedRunner } from '../../../tools/simulator/simulatedRunner.ts';

const CONTAINER = 'runner';
/** Labels of the pods in ARC's two modes. */
const LABELS = ['actions-runner', 'actions-ephemeral-runner'];

export class ArcRunners {
  /** Errors of the simulated runners. */
  readonly errors: unknown[] = [];
  readonly #core: CoreV1Api;
  readonly #fleet: Fleet;
  readonly #url: string;
  /** Runners by the UID of their pods. */
  readonly #runners = new Map<string, SimulatedRunner>();
  readonly #taken = new Set<string>();
  readonly #informers: ReturnType<typeof makeInformer<V1Pod>>[] = [];

  private constructor(core: CoreV1Api, url: string) {
    this.#core = core;
    this.#url = url;
    this.#fleet = new Fleet(url);
  }

  static async start(
    kubeConfig: KubeConfig,
    core: CoreV1Api,
    namespaces: readonly string[],
    simulatorUrl: string,
  ): Promise<ArcRunners> {
    const runners = new ArcRunners(core, simulatorUrl);
    for (const namespace of namespaces) {
      const informer = makeInformer<V1Pod>(kubeConfig, `/api/v1/namespaces/${namespace}/pods`, () =>
        core.listNamespacedPod({ namespace }),
      );
      for (const event of ['add', 'update'] as const)
        informer.on(event, (pod) => runners.#seen(pod));
      informer.on('delete', ({ metadata }) => runners.#runners.get(metadata?.uid ?? '')?.kill());
      informer.on('error', (error) => void runners.errors.push(error));
      runners.#informers.push(informer);
      await informer.start();
    }
    return runners;
  }

  /** Number of pods with a runner. */
  get count(): number {
    return this.#runners.size;
  }

  /** Kills the runner in that pod. */
  kill(uid: string): void {
    this.#runners.get(uid)?.kill();
  }

  async close(): Promise<void> {
    for (const informer of this.#informers) await informer.stop();
    this.#fleet.close();
  }

  #seen(pod: V1Pod): void {
    const { uid = '', labels = {}, deletionTimestamp } = pod.metadata ?? {};
    const runs =
      pod.status?.containerStatuses?.some(
        ({ name, state }) => name === CONTAINER && state?.running !== undefined,
      ) === true;
    if (
      !LABELS.some((label) => label in labels) ||
      !runs ||
      deletionTimestamp !== undefined ||
      this.#taken.has(uid)
    )
      return;
    // The pod may be seen again during the wait.
    this.#taken.add(uid);
    void this.#play(uid, pod).catch((error: unknown) => void this.errors.push(error));
  }

  async #play(uid: string, pod: V1Pod): Promise<void> {
    const { name = '', namespace = '' } = pod.metadata ?? {};
    const env = await this.#environment(pod);
    if (env['RUNNER_TOKEN'] === undefined && env['ACTIONS_RUNNER_INPUT_JITCONFIG'] === undefined)
      return;
    const runner = this.#fleet.start(env);
    this.#runners.set(uid, runner);
    if ((await runner.ended) === 'stopped') return;
    const container = pod.spec?.containers.find((each) => each.name === CONTAINER);
    const now = new Date();
    const ended = {
      name: CONTAINER,
      image: container?.image ?? '',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { terminated: { exitCode: 0, reason: 'Completed', startedAt: now, finishedAt: now } },
    };
    await this.#core
      .patchNamespacedPodStatus(
        { name, namespace, body: { status: { phase: 'Succeeded', containerStatuses: [ended] } } },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
      )
      .catch((error: { code?: number }) => {
        if (error.code !== 404) throw error;
      });
  }

  async #environment({ metadata, spec }: V1Pod): Promise<Record<string, string>> {
    const container = spec?.containers.find(({ name }) => name === CONTAINER);
    const env: Record<string, string> = {};
    for (const { name, value, valueFrom } of container?.env ?? []) {
      const from = valueFrom?.secretKeyRef;
      if (value !== undefined) env[name] = value;
      else if (from?.name !== undefined)
        env[name] = Buffer.from(
          (
            await this.#core.readNamespacedSecret({
              name: from.name,
              namespace: metadata?.namespace ?? '',
            })
          ).data?.[from.key] ?? '',
          'base64',
        ).toString();
    }
    return { ...env, RUNNER_URL: `${this.#url}/${env['RUNNER_ORG']}` };
  }
}
