/**
 * Workers and the pod watcher that run next to a Worker with the plugin. Each lane (the cluster,
 * each CI server credential) has a Worker that runs only activities.
 */
import type { Client } from '@temporalio/client';
import { Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker';
import type { DeferredCompletions } from '../../activities/watcher/deferredCompletions.ts';
import {
  UnknownCredentialError,
  type CiServer,
  type CiServers,
} from '../../activities/ports/ciServer.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import type { Logger } from '../../activities/ports/logger.ts';
import { startWatcher, type Watcher } from '../../activities/watcher/startWatcher.ts';
import { ciTaskQueue, clusterTaskQueue, listenTaskQueue } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { createWaitCompleter } from './waitCompleter.ts';
import { GatedSlotSupplier, type GatedSlotSupplierOptions } from './gatedSlotSupplier.ts';
import type { CiQueue } from '../settings/ciQueues.ts';

/** Options of {@link AuxiliaryWorkers}. */
export interface CompanionsOptions {
  readonly compute: Compute;
  readonly ciServers: CiServers;
  readonly deferredCompletions: DeferredCompletions;
  readonly ciQueues: readonly CiQueue[];
  readonly logger: Logger;
  readonly onCompletion?: (completed: boolean) => void;
  /** Options of the main Worker. Its `activities` are those of Holdfast only. */
  readonly workerOptions: WorkerOptions;
}

/** Task queue whose activities all need one server, with its limits. */
interface Lane extends GatedSlotSupplierOptions {
  readonly taskQueue: string;
  /**
   * Maximum activities per second over all workers.
   * @default no limit
   */
  readonly maxPerSecond?: number | undefined;
  /** @default 10 */
  readonly pollers?: number;
}

/** Maximum number of scale set sessions in one process. A waiting session is an idle connection. */
const MAX_LISTENERS = 1_000;

/** Default of the SDK for concurrent activities. */
const DEFAULT_ACTIVITIES = 100;

const COMPANION = Symbol('holdfast companion');

/** Returns whether these are the options of a Worker that the plugin creates itself. */
export function isAuxiliaryWorker(options: WorkerOptions): boolean {
  return COMPANION in options;
}

/**
 * The Workers of the CI and cluster task queues, and the watcher of pods. They run and stop
 * together with the main Worker.
 */
export class AuxiliaryWorkers {
  readonly #options: CompanionsOptions;
  readonly #lanes: readonly Lane[];
  readonly #workers: Worker[] = [];
  readonly #stopping = new AbortController();
  #watcher: Watcher | undefined;
  #connection: NativeConnection | undefined;

  constructor(options: CompanionsOptions) {
    this.#options = options;
    this.#lanes = auxiliaryTaskQueues(options);
    this.#connection = options.workerOptions.connection;
  }

  status(): { polling: boolean; podCacheSynced: boolean; activitiesInFlight: number } {
    const statuses = this.#workers.map((worker) => worker.getStatus());
    return {
      polling:
        statuses.length === this.#lanes.length + 1 &&
        statuses.every((status) => status.runState === 'RUNNING'),
      podCacheSynced: this.#watcher?.synced() ?? false,
      activitiesInFlight: statuses.reduce((sum, status) => sum + status.numInFlightActivities, 0),
    };
  }

  /** Drops the delayed notification that this runner is busy: its workflow has the job's event. */
  jobEventDelivered(workflowId: string): void {
    this.#watcher?.jobEventDelivered(workflowId);
  }

  /** Switches all Workers to this connection. Requests in progress may end on the previous one. */
  useConnection(connection: NativeConnection): void {
    this.#connection = connection;
    for (const worker of this.#workers) worker.connection = connection;
  }

  /**
   * Runs the main Worker, the auxiliary ones and the watcher until shutdown. If one of them fails,
   * all stop. All stop polling immediately. The watcher stops last, because activities may still
   * wait without a slot.
   * @throws the first failure
   */
  async runWith(main: Worker, next: (worker: Worker) => Promise<void>): Promise<void> {
    this.#workers.push(main);
    // A Worker has no event for a requested shutdown, and `next` resolves only after the grace
    // period, too late for the others.
    const shutdown = main.shutdown.bind(main);
    main.shutdown = () => {
      shutdown();
      this.#stop();
    };
    // The Worker polls immediately. A caller of runUntil() may shut it down before the others have
    // started.
    const run = next(main);
    const others = [
      ...this.#lanes.map(async (lane) => await this.#runLane(lane)),
      this.#startWatcher(main),
    ];
    run.then(
      () => this.#stop(),
      () => this.#stop(),
    );
    for (const other of others) other.catch(() => this.#stop());
    const results = await Promise.allSettled([run, ...others]);
    await this.#watcher?.stop();
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  async #runLane(lane: Lane): Promise<void> {
    const worker = await Worker.create(this.#laneWorkerOptions(lane));
    // The connection may have changed meanwhile.
    if (this.#connection) worker.connection = this.#connection;
    this.#workers.push(worker);
    const run = worker.run();
    if (this.#stopping.signal.aborted) worker.shutdown();
    await run;
  }

  async #startWatcher(main: Worker): Promise<void> {
    const { compute, deferredCompletions, logger, onCompletion, workerOptions } = this.#options;
    const client = (): Client => {
      // Read on each use: a new connection has a new client.
      if (!main.client) throw new Error('the Worker has no connection to Temporal');
      return main.client;
    };
    client();
    const completer = createWaitCompleter({ client, taskQueue: workerOptions.taskQueue });
    const starting = startWatcher({
      compute,
      completer,
      deferredCompletions,
      logger,
      ...omitUndefined({ onCompletion }),
    });
    const { signal } = this.#stopping;
    void starting
      .then(async (watcher) => (signal.aborted ? await watcher.stop() : undefined))
      .catch(() => undefined);
    // A cluster that does not answer must not keep the worker from stopping.
    const stopped = new Promise<undefined>((resolve) =>
      signal.addEventListener('abort', () => resolve(undefined)),
    );
    this.#watcher = await Promise.race([starting, stopped]);
  }

  #stop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    for (const worker of this.#workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  }

  #laneWorkerOptions(lane: Lane): WorkerOptions {
    const {
      connection,
      namespace,
      identity,
      dataConverter,
      interceptors,
      activities,
      workerDeploymentOptions,
    } = this.#options.workerOptions;
    const { shutdownGraceTime, shutdownForceTime } = this.#options.workerOptions;
    const inherited = {
      connection,
      namespace,
      identity,
      dataConverter,
      interceptors,
      activities,
      workerDeploymentOptions,
      shutdownGraceTime,
      shutdownForceTime,
    };
    const none = { type: 'fixed-size', numSlots: 1 } as const;
    const options: WorkerOptions = {
      ...omitUndefined(inherited),
      taskQueue: lane.taskQueue,
      tuner: {
        activityTaskSlotSupplier: new GatedSlotSupplier(lane),
        workflowTaskSlotSupplier: none,
        localActivityTaskSlotSupplier: none,
        nexusTaskSlotSupplier: none,
      },
      // Autoscaling polls are not used: they decrease while the lane is held back, and each
      // partition of the queue gets a quarter of the rate only while it is polled. Measured with
      // 150 calls at 3 a second: 2.1 a second with autoscaling polls, 2.8 with these.
      activityTaskPollerBehavior: { type: 'simple-maximum', maximum: lane.pollers ?? 10 },
      ...omitUndefined({ maxTaskQueueActivitiesPerSecond: lane.maxPerSecond }),
    };
    return Object.assign(options, { [COMPANION]: true });
  }
}

function auxiliaryTaskQueues({
  compute,
  ciServers,
  ciQueues,
  workerOptions,
}: CompanionsOptions): Lane[] {
  const { taskQueue, maxConcurrentActivityTaskExecutions: limit = DEFAULT_ACTIVITIES } =
    workerOptions;
  const clusterReachable = (): boolean => compute.isReachable?.() !== false;
  const cluster = { taskQueue: clusterTaskQueue(taskQueue), limit, reachable: clusterReachable };
  const ci = ciQueues.map(({ credential, concurrency = 90, maxPerSecond }) => {
    const server = ciServerOrUndefined(ciServers, credential);
    // Most activities of this lane create pods. It slows down while no pod can be created, so that
    // removals go first.
    return {
      taskQueue: ciTaskQueue(taskQueue, credential),
      limit: concurrency,
      maxPerSecond,
      reachable: () => server?.isReachable?.() !== false && clusterReachable(),
    };
  });
  const listen = {
    taskQueue: listenTaskQueue(taskQueue),
    limit: MAX_LISTENERS,
    // Each poll of a worker without connection can take a retry of a session with it.
    pollers: 1,
    reachable: () => true,
  };
  return [cluster, ...ci, listen];
}

/** Returns the CI server, or `undefined` for an unknown credential, which every call reports. */
function ciServerOrUndefined(ciServers: CiServers, credential: string): CiServer | undefined {
  try {
    return ciServers.get(credential);
  } catch (error) {
    if (error instanceof UnknownCredentialError) return undefined;
    throw error;
  }
}
