/**
 * Simulates the runners in the pods of KWOK's fake nodes. When such a node reports that a pod runs,
 * the runner connects to the simulator after its startup time, with the content of the pod's
 * Secret. Its probes report that. When its job has ended, the container ends with exit code 0.
 *
 * A separate process, so that its CPU time does not count as the worker's. Forked by the benchmark.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { V1Secret } from '@kubernetes/client-node';
import pRetry from 'p-retry';
import {
  ApiError,
  ApiServer,
  type ApiCall,
} from '../../../activities/compute/kubernetes/apiServer.ts';
import { loadKubeConfig } from '../../../activities/compute/kubernetes/kubeConfig.ts';
import { PodCache } from '../../../activities/compute/kubernetes/podCache.ts';
import { Fleet } from '../../simulator/fleet.ts';
import type { SimulatedRunner } from '../../simulator/simulatedRunner.ts';
import { RUNNER_CONTAINER } from '../../../core/domain/podTemplate.ts';
import { DELETION_DELAY_ANNOTATION } from '../../lab/kwokStages.ts';
import { mapConcurrently } from '../concurrency.ts';
import type {
  AgentMessage,
  AgentRequest,
  KwokAgentOptions,
  PodStep,
  PodTiming,
} from './kwokAgentProtocol.ts';
import type { PodView } from '../../../core/domain/pod.ts';

/** Number of concurrent status patches when many containers are ended together. */
const END_CONCURRENCY = 32;

/** Period of the supervisor's probes (activities/compute/kubernetes/supervisorInjection.ts). */
const PROBE_PERIOD_MS = 1_000;
const CONTAINER = { name: RUNNER_CONTAINER, image: 'runner', imageID: '', restartCount: 0 };
/** Interval between retries of a request, which a kubelet repeats until it gets a response (ms). */
const RETRY_MS = 200;
/** Returns the record that the supervisor writes at the end (docs/supervisor.md). */
const record = (exitCode: number, hadJob: boolean): string =>
  `{"exitCode":${exitCode},"signal":null,"reason":null,"startedAt":null,"endedAt":"2026-01-01T00:00:00.000Z","job":"${hadJob ? 'completed' : 'none'}"}`;

interface SimulatedPod {
  view: PodView;
  readonly timing: PodTiming;
  runner?: SimulatedRunner;
  ended: boolean;
  hadJob?: boolean;
  /** Result of its probe. */
  ready?: boolean;
  /** Result that was last reported to the API server. */
  reported?: boolean;
  /** Whether a report is in progress. */
  reporting?: boolean;
  /** Time of the last report (ms since the epoch). */
  reportedAtMs?: number;
}

const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;

class KwokAgent {
  readonly #options: KwokAgentOptions;
  readonly #api: ApiServer;
  readonly #fleet: Fleet;
  readonly #pods = new Map<string, SimulatedPod>();
  #timing: PodTiming;

  constructor(options: KwokAgentOptions) {
    this.#options = options;
    this.#timing = options.timing;
    this.#api = new ApiServer(loadKubeConfig({ path: options.kubeconfig }));
    this.#fleet = new Fleet(options.simulatorUrl);
    const cache = new PodCache(this.#api, {
      path: `/api/v1/namespaces/${options.namespace}/pods`,
      labelSelector: options.labelSelector,
      isDeleted: async () => true,
      // The cache recovers from errors, which occur on a loaded machine.
      onError: (error, what) => console.error(`KWOK agent: ${what}: ${String(error)}`),
      listener: {
        changed: (pod, previous) => this.#changed(pod, previous),
        relisted: () => undefined,
      },
    });
    void waitUntil(() => cache.synced()).then(() => send({ type: 'ready' }));
  }

  /** Sets the timing of pods that are created from now on. */
  setTiming(timing: PodTiming): void {
    this.#timing = timing;
  }

  /** Ends the containers of these workflows, all at once. */
  async endAll(workflowIds: readonly string[]): Promise<void> {
    const ids = new Set(workflowIds);
    const pods = [...this.#pods.values()].filter(({ view }) => ids.has(view.workflowId));
    await mapConcurrently(pods, END_CONCURRENCY, async (pod) => {
      pod.runner?.kill();
      pod.hadJob = true;
      await this.#exit(pod.view);
    });
    send({ type: 'allEnded', count: pods.length });
  }

  #changed(view: PodView, previous: PodView | undefined): void {
    const at = Date.now();
    if (view.deleted) {
      this.#pods.get(view.name)?.runner?.kill();
      this.#pods.delete(view.name);
      this.#step('gone', view, at);
      return;
    }
    const known = this.#pods.get(view.name);
    if (known) known.view = view;
    else this.#add(view);
    if (previous === undefined) this.#step('created', view, at);
    if (view.startedAt === undefined || previous?.startedAt !== undefined || view.ended) return;
    this.#step('running', view, at);
    // Errors after the worker has deleted the Secret are ignored. The event of the pod may be late.
    this.#simulate(view).catch((error: unknown) =>
      this.#pods.has(view.name) && !isNotFound(error)
        ? fail(`the runner in ${view.name}: ${String(error)}`)
        : undefined,
    );
  }

  #add(view: PodView): void {
    const timing = this.#timing;
    this.#pods.set(view.name, { view, timing, ended: false });
    if (timing.deletionMs <= 0) return;
    const annotations = { [DELETION_DELAY_ANNOTATION]: `${timing.deletionMs}ms` };
    this.#call(view, {
      verb: 'patch',
      resource: 'pods',
      path: `/api/v1/namespaces/${this.#options.namespace}/pods/${view.name}`,
      body: { metadata: { annotations } },
    }).catch((error: unknown) =>
      isNotFound(error) ? undefined : fail(`the annotation of ${view.name}: ${String(error)}`),
    );
  }

  async #simulate(view: PodView): Promise<void> {
    const pod = this.#pods.get(view.name);
    if (pod === undefined) return;
    await delay(pod.timing.startupMs);
    if (this.#pods.get(view.name) !== pod) return;
    const secret = await this.#call<V1Secret>(view, {
      verb: 'get',
      resource: 'secrets',
      path: `/api/v1/namespaces/${this.#options.namespace}/secrets/${view.name}`,
    });
    const env = Object.fromEntries(
      Object.entries(secret.data ?? {}).map(([key, value]) => [
        key,
        Buffer.from(value, 'base64').toString(),
      ]),
    );
    const runner = this.#fleet.start(env, {
      onOnline: () => {
        this.#step('online', view);
        this.#probe(view, true);
      },
      onJobStart: () => {
        pod.hadJob = true;
        this.#step('jobStarted', view);
        this.#probe(view, false);
      },
      onJobEnd: () => {
        this.#step('jobFinished', view);
        this.#probe(view, true); // a static runner, which may run more jobs
      },
    });
    pod.runner = runner;
    const end = await runner.ended;
    if (end === 'refused')
      console.error(`KWOK agent: the CI server rejected the runner in ${view.name}`);
    // After `stop` or `kill` the end of the pod has ended the runner, so the pod needs no update.
    if (end !== 'stopped' && this.#pods.has(view.name))
      await this.#exit(view, end === 'refused' ? 1 : 0);
  }

  /**
   * Reports the result of the probe as a kubelet does, which probes once a second. Does nothing for
   * a pod without probes.
   */
  #probe(view: PodView, ready: boolean): void {
    const pod = this.#pods.get(view.name);
    if (pod === undefined || view.online === undefined) return;
    pod.ready = ready;
    if (pod.reporting === true) return;
    pod.reporting = true;
    const hasEnded = (): boolean => pod.ended || !this.#pods.has(view.name);
    // Send one report at a time, so that a late one cannot overwrite a newer one.
    const report = async (): Promise<void> => {
      for (;;) {
        await delay(
          Math.max(
            Math.random() * PROBE_PERIOD_MS,
            (pod.reportedAtMs ?? 0) + PROBE_PERIOD_MS - Date.now(),
          ),
        );
        const { ready: now = ready } = pod;
        // A kubelet does not notice a job that is shorter than the probe period.
        if (hasEnded() || pod.reported === now) break;
        pod.reportedAtMs = Date.now();
        const containerStatuses = [
          {
            ...CONTAINER,
            ready: now,
            started: true,
            state: { running: { startedAt: new Date(view.startedAt ?? Date.now()) } },
          },
        ];
        await this.#patch(view, { status: { containerStatuses, conditions: conditions(now) } });
        pod.reported = now;
        if (pod.ready === now) break;
      }
      pod.reporting = false;
    };
    // The container may have ended in the meantime. The API server then rejects the patch.
    report().catch((error: unknown) =>
      hasEnded() || isNotFound(error)
        ? undefined
        : fail(`the probes of ${view.name}: ${String(error)}`),
    );
  }

  async #patch(view: PodView, body: object): Promise<void> {
    await this.#call(view, {
      verb: 'patch',
      resource: 'pods',
      path: `/api/v1/namespaces/${this.#options.namespace}/pods/${view.name}/status`,
      body,
    });
  }

  /** Repeats a request until the API server accepts or rejects it, or the pod is deleted. */
  async #call<T>({ name }: PodView, call: ApiCall): Promise<T> {
    const isDecided = (error: Error): boolean =>
      error instanceof ApiError && error.code < 500 && error.code !== 429;
    return await pRetry(async () => await this.#api.call<T>(call), {
      retries: Infinity,
      minTimeout: RETRY_MS,
      factor: 1,
      shouldRetry: ({ error }) => this.#pods.has(name) && !isDecided(error),
    });
  }

  /** Reports the exit of the container as a kubelet does. */
  async #exit(view: PodView, exitCode = 0): Promise<void> {
    const pod = this.#pods.get(view.name);
    if (pod === undefined || pod.ended) return;
    pod.ended = true;
    const finishedAt = new Date(Math.floor(Date.now() / 1000) * 1000);
    const message =
      view.online === undefined ? {} : { message: record(exitCode, pod.hadJob === true) };
    const [phase, reason] = exitCode === 0 ? ['Succeeded', 'Completed'] : ['Failed', 'Error'];
    const terminated = {
      exitCode,
      reason,
      startedAt: new Date(view.startedAt ?? finishedAt),
      finishedAt,
      ...message,
    };
    await this.#patch(view, {
      status: {
        phase,
        containerStatuses: [{ ...CONTAINER, ready: false, started: false, state: { terminated } }],
      },
    });
    this.#step('exited', view);
  }

  #step(step: PodStep['step'], { workflowId, name }: PodView, at: number = Date.now()): void {
    send({ type: 'step', step, workflowId, pod: name, at });
  }
}

/**
 * Returns conditions as a kubelet writes them, with times in whole seconds. Workers distinguish two
 * changes by these times.
 */
function conditions(ready: boolean): object[] {
  const lastTransitionTime = new Date(Math.floor(Date.now() / 1_000) * 1_000);
  const status = ready ? 'True' : 'False';
  return [
    { type: 'PodScheduled', status: 'True' },
    { type: 'Initialized', status: 'True' },
    { type: 'ContainersReady', status, lastTransitionTime },
    { type: 'Ready', status, lastTransitionTime },
  ];
}

function send(message: AgentMessage): void {
  process.send?.(message);
}

function fail(message: string): void {
  send({ type: 'failed', message });
}

async function waitUntil(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(20);
}

const agent = new KwokAgent(JSON.parse(process.argv[2] ?? '{}') as KwokAgentOptions);
process.on('message', (message: AgentRequest) => {
  if (message.type === 'timing') return agent.setTiming(message.timing);
  agent.endAll(message.workflowIds).catch((error: unknown) => fail(String(error)));
});
// The benchmark has ended.
process.on('disconnect', () => process.exit(0));
