import {
  makeInformer,
  type CoreV1Api,
  type KubeConfig,
  type V1Pod,
  type V1Secret,
} from '@kubernetes/client-node';
import {
  RUNNER_NAME_ANNOTATION,
  WORKFLOW_ID_ANNOTATION,
} from '../../activities/compute/kubernetes/metadata.ts';
import { RUNNER_CONTAINER } from '../../core/domain/podTemplate.ts';
import type { SimulatedJob } from '../simulator/types.ts';
import type { Simulator } from '../simulator/simulator.ts';
import type { WorkerRequest } from './apiServerProxy.ts';
import type { Entry } from './timeline.ts';

/** A pod, as far as it is known here. */
export interface KnownPod {
  readonly uid: string;
  readonly name: string;
  readonly life: string;
  readonly runner: string;
  readonly started: boolean;
  readonly stopping: boolean;
  readonly ended: boolean;
}

/** What it did without a word about when, or to whom. */
type ObservedEvent = Entry extends infer E ? (E extends unknown ? Omit<E, 'at'> : never) : never;

const WATCH_AGAIN_MS = 200;

/** Writes down what happens: to pods (by a watch of its own), to jobs and registrations (in the simulator), and what workers ask for. */
export class Observer {
  readonly entries: Entry[] = [];
  readonly #startedAt = performance.now();
  readonly #simulator: Simulator;
  readonly #pods = new Map<string, KnownPod>();
  /** By the name of its Secret, which is its pod's. */
  readonly #runnerOf = new Map<string, string>();
  readonly #greedy = new Set<number>();
  readonly #openJobs = new Map<number, Pick<SimulatedJob, 'status' | 'assignments'>>();
  /** Names of registrations by id, those that were removed included. */
  readonly #runners = new Map<number, string>();
  #registered = new Set<string>();
  #requestsSeen = 0;
  #stopped = false;

  constructor(simulator: Simulator) {
    this.#simulator = simulator;
  }

  /** Since the start, in ms. */
  now(): number {
    return Math.round(performance.now() - this.#startedAt);
  }

  add(happening: ObservedEvent): void {
    this.entries.push({ at: this.now(), ...happening } as Entry);
  }

  /** Those that are there now. */
  pods(): KnownPod[] {
    return [...this.#pods.values()];
  }

  pod(name: string): KnownPod | undefined {
    return this.pods().find((pod) => pod.name === name);
  }

  /** Follows this job to its end. */
  follow({ id }: SimulatedJob): void {
    this.add({ kind: 'job', job: id, step: 'queued' });
    this.#openJobs.set(id, { status: 'queued', assignments: 0 });
    this.#lookAtJob(id);
  }

  /** The same of a job that costs its runner the pod. */
  followExtraPods(job: SimulatedJob): void {
    this.#greedy.add(job.id);
    this.follow(job);
  }

  openJobs(): SimulatedJob[] {
    return [...this.#openJobs.keys()].flatMap((id) => this.#simulator.world.jobs.get(id) ?? []);
  }

  /** What a worker asks the API server for. @returns what its answer is told to */
  request({ method, path, body }: WorkerRequest): (status: number) => void {
    if (method === 'GET') return () => undefined;
    const secret =
      method === 'POST' && path.endsWith('/secrets')
        ? (JSON.parse(body) as V1Secret).metadata
        : undefined;
    const name = /\/pods\/([^/]+)$/.exec(path)?.[1];
    const life = name === undefined ? runnerFromPath(body) : runnerOfPod(name);
    if (method === 'DELETE' && name !== undefined && life !== undefined) {
      const known = this.pod(name);
      const mine = ({ runner_name: runner }: SimulatedJob): boolean =>
        runner !== null &&
        (known === undefined ? workflowOfRunner(runner) === life : runner === known.runner);
      const job = this.openJobs().find(
        (open) => mine(open) && (open.status === 'assigned' || open.status === 'in_progress'),
      );
      const { gracePeriodSeconds, preconditions } = (body === '' ? {} : JSON.parse(body)) as {
        gracePeriodSeconds?: number;
        preconditions?: { uid?: string };
      };
      this.add({
        kind: 'deletion',
        life,
        pod: preconditions?.uid ?? known?.uid ?? name,
        graceS: gracePeriodSeconds,
        ...(job === undefined ? {} : { job: job.id }),
      });
    }
    return (status) => {
      // Without an answer it may have been made: another that was made says so itself.
      if (secret?.name !== undefined && (status === 201 || status === 0))
        this.#runnerOf.set(secret.name, secret.annotations?.[RUNNER_NAME_ANNOTATION] ?? '');
      this.add({
        kind: 'request',
        to: 'cluster',
        what: `${method} ${path.split('/').slice(-2).join('/')}`,
        status,
        ...(life === undefined ? {} : { life }),
      });
    };
  }

  /** Follows the pods of a namespace, and the simulator; resolves when both have begun. */
  async start(kubeConfig: KubeConfig, core: CoreV1Api, namespace: string): Promise<void> {
    const informer = makeInformer<V1Pod>(
      kubeConfig,
      `/api/v1/namespaces/${namespace}/pods`,
      async () => await core.listNamespacedPod({ namespace }),
    );
    const begin = async (): Promise<void> => {
      if (!this.#stopped) await informer.start().catch(again);
    };
    const again = (): void => void setTimeout(() => void begin(), WATCH_AGAIN_MS);
    informer.on('add', (pod) => this.#sawPod(pod));
    informer.on('update', (pod) => this.#sawPod(pod));
    informer.on('delete', (pod) => this.#podGone(pod));
    informer.on('error', again);
    this.#stopInformer = async () => await informer.stop();
    await begin();
    void this.#followSimulator();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#stopInformer();
  }

  #stopInformer: () => Promise<void> = async () => undefined;

  #sawPod(pod: V1Pod): void {
    const { uid = '', name = '', annotations = {}, deletionTimestamp } = pod.metadata ?? {};
    const known = this.#pods.get(uid);
    const state = pod.status?.containerStatuses?.find(
      (container) => container.name === RUNNER_CONTAINER,
    )?.state;
    const now: KnownPod = {
      uid,
      name,
      life: annotations[WORKFLOW_ID_ANNOTATION] ?? '',
      runner: this.#runnerOf.get(name) ?? '',
      started: state?.running !== undefined || state?.terminated !== undefined,
      stopping: deletionTimestamp !== undefined,
      ended:
        state?.terminated !== undefined ||
        pod.status?.phase === 'Succeeded' ||
        pod.status?.phase === 'Failed',
    };
    this.#pods.set(uid, now);
    if (known === undefined) this.#step(now, 'created');
    for (const step of ['started', 'stopping', 'ended'] as const)
      if (now[step] && known?.[step] !== true) this.#step(now, step);
  }

  #podGone(pod: V1Pod): void {
    const known = this.#pods.get(pod.metadata?.uid ?? '');
    if (known === undefined) return;
    this.#pods.delete(known.uid);
    this.#step(known, 'gone');
  }

  #step(
    { life, uid, name, runner }: KnownPod,
    step: Extract<Entry, { kind: 'pod' }>['step'],
  ): void {
    this.add({ kind: 'pod', life, pod: uid, name, runner, step });
  }

  async #followSimulator(): Promise<void> {
    const { changes } = this.#simulator.world;
    for (let version = 0; !this.#stopped; version = await changes.next(version, 1_000)) {
      for (const id of this.#openJobs.keys()) this.#lookAtJob(id);
      this.#lookAtRegistrations();
      this.#lookAtRequests();
    }
  }

  #lookAtJob(id: number): void {
    const before = this.#openJobs.get(id);
    const job = this.#simulator.world.jobs.get(id);
    if (before === undefined || job === undefined) return;
    const { status, assignments, runner_name: runner } = job;
    const whose = runner === null ? {} : { life: workflowOfRunner(runner) };
    if (assignments > before.assignments)
      this.add({ kind: 'job', job: id, step: 'assigned', ...whose });
    if (assignments > before.assignments && this.#greedy.has(id))
      this.add({
        kind: 'taken',
        pod: this.pods().find((pod) => pod.runner === runner)?.uid ?? '',
        how: 'out of memory',
        ...whose,
      });
    if (status === 'in_progress' && before.status !== 'in_progress')
      this.add({ kind: 'job', job: id, step: 'started', ...whose });
    if (status === 'completed') {
      this.add({
        kind: 'job',
        job: id,
        step: 'completed',
        conclusion: job.conclusion ?? '',
        ...whose,
      });
      this.#openJobs.delete(id);
    } else this.#openJobs.set(id, { status, assignments });
  }

  #lookAtRegistrations(): void {
    const all = this.#simulator.world.registrations.all();
    for (const { id, name } of all) this.#runners.set(id, name);
    const now = new Set(all.map(({ name }) => name));
    for (const runner of now)
      if (!this.#registered.has(runner))
        this.add({ kind: 'registration', runner, step: 'made', life: workflowOfRunner(runner) });
    for (const runner of this.#registered)
      if (!now.has(runner))
        this.add({ kind: 'registration', runner, step: 'removed', life: workflowOfRunner(runner) });
    this.#registered = now;
  }

  /** Only those that name a runner by its id: of the others the log does not say whose they are. */
  #lookAtRequests(): void {
    const { total } = this.#simulator.requestCounts();
    if (total === this.#requestsSeen) return;
    const fresh = this.#simulator.requests().slice(-(total - this.#requestsSeen));
    this.#requestsSeen = total;
    for (const { endpoint, path, status } of fresh) {
      const runner = this.#runners.get(Number(/\/actions\/runners\/(\d+)$/.exec(path)?.[1]));
      if (runner !== undefined)
        this.add({
          kind: 'request',
          to: 'CI server',
          what: `${endpoint.split(' ', 1)[0]} registration ${runner}`,
          status,
          life: workflowOfRunner(runner),
        });
    }
  }
}

/** A chaos run's workflow ids are short and fit for DNS: pods and runners are named after them, with a hash (docs/lifecycle.md, Names). */
export const runnerOfPod = (name: string): string => name.replace(/-[0-9a-f]{10}$/, '');
export const workflowOfRunner = (runner: string): string =>
  `runner-${runner.replace(/-[0-9a-f]{10}(?:-r\d+)?$/, '')}`;

/** The life that the object in a creation's body is for. */
function runnerFromPath(body: string): string | undefined {
  return new RegExp(`"${WORKFLOW_ID_ANNOTATION.replaceAll('.', '\\.')}":"([^"]+)"`).exec(body)?.[1];
}
