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

/** Known state of a pod. */
export interface KnownPod {
  readonly uid: string;
  readonly name: string;
  readonly workflowId: string;
  readonly runner: string;
  readonly started: boolean;
  readonly stopping: boolean;
  readonly ended: boolean;
}

/** Entry without its time. */
type ObservedEvent = Entry extends infer E ? (E extends unknown ? Omit<E, 'at'> : never) : never;

const WATCH_RETRY_MS = 200;

/**
 * Records the timeline of a run: pods (from a separate watch), jobs and registrations (from the
 * simulator), and requests of workers.
 */
export class Observer {
  readonly entries: Entry[] = [];
  readonly #startedAt = performance.now();
  readonly #simulator: Simulator;
  readonly #pods = new Map<string, KnownPod>();
  /** Names of runners by the name of their Secret, which is also that of their pod. */
  readonly #runnerOf = new Map<string, string>();
  /** IDs of jobs that use too much memory. */
  readonly #outOfMemoryJobs = new Set<number>();
  readonly #openJobs = new Map<number, Pick<SimulatedJob, 'status' | 'assignments'>>();
  /** Names of registrations by ID, removed ones included. */
  readonly #runners = new Map<number, string>();
  #registered = new Set<string>();
  #requestsSeen = 0;
  #stopped = false;

  constructor(simulator: Simulator) {
    this.#simulator = simulator;
  }

  /** Returns the time since the start (ms). */
  now(): number {
    return Math.round(performance.now() - this.#startedAt);
  }

  /** Adds an entry with the current time. */
  add(event: ObservedEvent): void {
    this.entries.push({ at: this.now(), ...event } as Entry);
  }

  /** Returns the pods that exist now. */
  pods(): KnownPod[] {
    return [...this.#pods.values()];
  }

  pod(name: string): KnownPod | undefined {
    return this.pods().find((pod) => pod.name === name);
  }

  /** Records the events of a job until its end. */
  follow({ id }: SimulatedJob): void {
    this.add({ kind: 'job', job: id, step: 'queued' });
    this.#openJobs.set(id, { status: 'queued', assignments: 0 });
    this.#checkJob(id);
  }

  /** Records the events of a job that uses too much memory, so that its runner loses its pod. */
  followOutOfMemory(job: SimulatedJob): void {
    this.#outOfMemoryJobs.add(job.id);
    this.follow(job);
  }

  /** Returns the jobs that have not completed. */
  openJobs(): SimulatedJob[] {
    return [...this.#openJobs.keys()].flatMap((id) => this.#simulator.world.jobs.get(id) ?? []);
  }

  /**
   * Records a request of a worker to the API server.
   * @returns a function to call with the status of the response, or 0 without a response
   */
  request({ method, path, body }: WorkerRequest): (status: number) => void {
    if (method === 'GET') return () => undefined;
    const secret =
      method === 'POST' && path.endsWith('/secrets')
        ? (JSON.parse(body) as V1Secret).metadata
        : undefined;
    const name = /\/pods\/([^/]+)$/.exec(path)?.[1];
    const workflowId = name === undefined ? runnerOfBody(body) : runnerOfPod(name);
    if (method === 'DELETE' && name !== undefined && workflowId !== undefined) {
      const known = this.pod(name);
      const isOfRunner = ({ runner_name: runner }: SimulatedJob): boolean =>
        runner !== null &&
        (known === undefined ? workflowOfRunner(runner) === workflowId : runner === known.runner);
      const job = this.openJobs().find(
        (open) => isOfRunner(open) && (open.status === 'assigned' || open.status === 'in_progress'),
      );
      const { gracePeriodSeconds, preconditions } = (body === '' ? {} : JSON.parse(body)) as {
        gracePeriodSeconds?: number;
        preconditions?: { uid?: string };
      };
      this.add({
        kind: 'deletion',
        workflowId,
        pod: preconditions?.uid ?? known?.uid ?? name,
        graceS: gracePeriodSeconds,
        ...(job === undefined ? {} : { job: job.id }),
      });
    }
    return (status) => {
      // Without a response, the Secret may have been created. A later creation overwrites this.
      if (secret?.name !== undefined && (status === 201 || status === 0))
        this.#runnerOf.set(secret.name, secret.annotations?.[RUNNER_NAME_ANNOTATION] ?? '');
      this.add({
        kind: 'request',
        to: 'cluster',
        what: `${method} ${path.split('/').slice(-2).join('/')}`,
        status,
        ...(workflowId === undefined ? {} : { workflowId }),
      });
    };
  }

  /** Starts to record pods of a namespace and the simulator. Resolves when both have started. */
  async start(kubeConfig: KubeConfig, core: CoreV1Api, namespace: string): Promise<void> {
    const informer = makeInformer<V1Pod>(
      kubeConfig,
      `/api/v1/namespaces/${namespace}/pods`,
      async () => await core.listNamespacedPod({ namespace }),
    );
    const begin = async (): Promise<void> => {
      if (!this.#stopped) await informer.start().catch(retry);
    };
    const retry = (): void => void setTimeout(() => void begin(), WATCH_RETRY_MS);
    informer.on('add', (pod) => this.#onPod(pod));
    informer.on('update', (pod) => this.#onPod(pod));
    informer.on('delete', (pod) => this.#onPodDeleted(pod));
    informer.on('error', retry);
    this.#stopInformer = async () => await informer.stop();
    await begin();
    void this.#followSimulator();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#stopInformer();
  }

  #stopInformer: () => Promise<void> = async () => undefined;

  #onPod(pod: V1Pod): void {
    const { uid = '', name = '', annotations = {}, deletionTimestamp } = pod.metadata ?? {};
    const known = this.#pods.get(uid);
    const state = pod.status?.containerStatuses?.find(
      (container) => container.name === RUNNER_CONTAINER,
    )?.state;
    const now: KnownPod = {
      uid,
      name,
      workflowId: annotations[WORKFLOW_ID_ANNOTATION] ?? '',
      runner: this.#runnerOf.get(name) ?? '',
      started: state?.running !== undefined || state?.terminated !== undefined,
      stopping: deletionTimestamp !== undefined,
      ended:
        state?.terminated !== undefined ||
        pod.status?.phase === 'Succeeded' ||
        pod.status?.phase === 'Failed',
    };
    this.#pods.set(uid, now);
    if (known === undefined) this.#addPodStep(now, 'created');
    for (const step of ['started', 'stopping', 'ended'] as const)
      if (now[step] && known?.[step] !== true) this.#addPodStep(now, step);
  }

  #onPodDeleted(pod: V1Pod): void {
    const known = this.#pods.get(pod.metadata?.uid ?? '');
    if (known === undefined) return;
    this.#pods.delete(known.uid);
    this.#addPodStep(known, 'deleted');
  }

  #addPodStep(
    { workflowId, uid, name, runner }: KnownPod,
    step: Extract<Entry, { kind: 'pod' }>['step'],
  ): void {
    this.add({ kind: 'pod', workflowId, pod: uid, name, runner, step });
  }

  async #followSimulator(): Promise<void> {
    const { changes } = this.#simulator.world;
    for (let version = 0; !this.#stopped; version = await changes.next(version, 1_000)) {
      for (const id of this.#openJobs.keys()) this.#checkJob(id);
      this.#checkRegistrations();
      this.#checkRequests();
    }
  }

  #checkJob(id: number): void {
    const before = this.#openJobs.get(id);
    const job = this.#simulator.world.jobs.get(id);
    if (before === undefined || job === undefined) return;
    const { status, assignments, runner_name: runner } = job;
    const owner = runner === null ? {} : { workflowId: workflowOfRunner(runner) };
    if (assignments > before.assignments)
      this.add({ kind: 'job', job: id, step: 'assigned', ...owner });
    if (assignments > before.assignments && this.#outOfMemoryJobs.has(id))
      this.add({
        kind: 'disrupted',
        pod: this.pods().find((pod) => pod.runner === runner)?.uid ?? '',
        how: 'out of memory',
        ...owner,
      });
    if (status === 'in_progress' && before.status !== 'in_progress')
      this.add({ kind: 'job', job: id, step: 'started', ...owner });
    if (status === 'completed') {
      this.add({
        kind: 'job',
        job: id,
        step: 'completed',
        conclusion: job.conclusion ?? '',
        ...owner,
      });
      this.#openJobs.delete(id);
    } else this.#openJobs.set(id, { status, assignments });
  }

  #checkRegistrations(): void {
    const all = this.#simulator.world.registrations.all();
    for (const { id, name } of all) this.#runners.set(id, name);
    const now = new Set(all.map(({ name }) => name));
    for (const runner of now)
      if (!this.#registered.has(runner)) this.#addRegistrationStep(runner, 'created');
    for (const runner of this.#registered)
      if (!now.has(runner)) this.#addRegistrationStep(runner, 'removed');
    this.#registered = now;
  }

  #addRegistrationStep(runner: string, step: 'created' | 'removed'): void {
    this.add({ kind: 'registration', runner, step, workflowId: workflowOfRunner(runner) });
  }

  /** Records new requests to the CI server that have the ID of a runner in their path. */
  #checkRequests(): void {
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
          workflowId: workflowOfRunner(runner),
        });
    }
  }
}

/**
 * Returns the workflow ID of the runner of a pod. Workflow IDs of chaos runs are short DNS labels,
 * so pods and runners are named after them, with a hash (docs/lifecycle.md, Names).
 */
export const runnerOfPod = (name: string): string => name.replace(/-[0-9a-f]{10}$/, '');
/** Returns the workflow ID of a runner from its name. */
export const workflowOfRunner = (runner: string): string =>
  `runner-${runner.replace(/-[0-9a-f]{10}(?:-r\d+)?$/, '')}`;

/** Returns the workflow ID of the runner of the object in a request's body. */
function runnerOfBody(body: string): string | undefined {
  return new RegExp(`"${WORKFLOW_ID_ANNOTATION.replaceAll('.', '\\.')}":"([^"]+)"`).exec(body)?.[1];
}
