/** Holdfast as a Temporal plugin: put it on any Worker of yours, and that Worker runs runners. */
import {
  NativeConnection,
  type ReplayWorkerOptions,
  type Worker,
  type WorkerOptions,
  type WorkerPlugin,
} from '@temporalio/worker';
import { HeldBackAnswers } from '../../activities/watcher/deferredCompletions.ts';
import { createActivities } from '../../activities/index.ts';
import type { CiServers, Compute, Logger, PodLogs } from '../../activities/ports.ts';
import type { SweepReport } from '../../core/contract/index.ts';
import type { TimeoutPolicy } from '../../core/input/timeoutPolicy.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { encrypts } from '../codec/dataConverter.ts';
import { workflowInterceptorsPath, workflowsFor, workflowsPath } from './workflowBundle.ts';
import { Companions, isCompanion } from './auxiliaryWorkers.ts';
import type { SpanTarget } from '../tracing/spanSink.ts';
import { withLivesTraced, withTracing } from '../tracing/withTracing.ts';
import { checkWorkerDeploymentOptions } from './versioning.ts';
import type { CiQueue } from '../settings/ciQueues.ts';

export interface HoldfastPluginOptions {
  /** Runs the runners. */
  readonly compute: Compute;
  /** Gives the CI server of each credential. */
  readonly ciServers: CiServers;
  /** The credentials whose task queues this worker serves. */
  readonly ciQueues: readonly CiQueue[];
  /** Keeps the last lines of runners that did not succeed. @default none is kept */
  readonly podLogs?: PodLogs;
  /** Timeouts by scope, under those of a runner's own input. @default none */
  readonly timeoutPolicy?: TimeoutPolicy;
  /** How long an activity may hold its answer back for what comes soon after it, in ms; see activities/watcher/deferredCompletions.ts. @default 5000 @internal */
  readonly answersHeldBackMs?: number;
  /** Where spans of lives go; the process then has a tracer provider of OpenTelemetry's, as its own SDK registers it. @default none are exported */
  readonly tracing?: SpanTarget;
  /** @default no logging */
  readonly logger?: Logger;
  /** Told of every wait that the watcher completed (`true`), or that nobody waited for (`false`). */
  readonly onCompletion?: (completed: boolean) => void;
  /** Told of every sweep that this worker made. */
  readonly onSweep?: (report: SweepReport) => void;
}

/** How the plugin's parts are doing. */
export interface HoldfastPluginStatus {
  /** All Workers poll. */
  readonly polling: boolean;
  /** The watch over the pods is up to date. */
  readonly watchSynced: boolean;
  /** Activities under way, on all task queues. */
  readonly activitiesInFlight: number;
}

const QUIET: Logger = { info: () => undefined, warn: () => undefined };

/**
 * Gives a Worker the workflows and activities of Holdfast, and runs beside it, on its connection, one activity-only Worker for
 * each credential's task queue and the watcher of the pods. They stop together with the Worker.
 *
 * A Worker that has workflows of its own (`workflowsPath` or `workflowBundle`) keeps them: its workflows file then says
 * `export * from 'holdfast/workflows';`. Activities are added to its own; a name in both is an error.
 * The Workers beside it get the data converter and the interceptors that are set by then: name this plugin after those that set them.
 *
 * One instance serves one Worker.
 */
export class HoldfastPlugin implements WorkerPlugin {
  readonly name = 'holdfast';
  readonly #options: HoldfastPluginOptions;
  readonly #heldBackAnswers: HeldBackAnswers;
  #workerOptions: WorkerOptions | undefined;
  #ownConnection: NativeConnection | undefined;
  #companions: Companions | undefined;

  constructor(options: HoldfastPluginOptions) {
    this.#options = options;
    this.#heldBackAnswers = new HeldBackAnswers(options.answersHeldBackMs);
  }

  /** What a readiness probe wants to know. */
  status(): HoldfastPluginStatus {
    return (
      this.#companions?.status() ?? { polling: false, watchSynced: false, activitiesInFlight: 0 }
    );
  }

  /**
   * Has your Worker, and those beside it, go on with this connection, as after a change of certificates. What is under way may end on the
   * one before: close that later.
   */
  useConnection(connection: NativeConnection): void {
    this.#companions?.useConnection(connection);
  }

  /** @throws Error when the plugin is in use already, an activity's name is taken, or workflows of a versioned Worker would be pinned by default */
  async configureWorker(given: WorkerOptions): Promise<WorkerOptions> {
    // A plugin that is set on the connection also meets the Workers that it makes itself.
    if (isCompanion(given)) return given;
    if (this.#workerOptions)
      throw new Error('this HoldfastPlugin is in use by another Worker: make one for each Worker');
    checkWorkerDeploymentOptions(given.workerDeploymentOptions);
    const { compute, ciServers, podLogs, timeoutPolicy, onSweep, tracing } = this.#options;
    const options = await withTracing(given, tracing);
    const activities = createActivities({
      compute,
      ciServers,
      heldBackAnswers: this.#heldBackAnswers,
      encrypted: encrypts(options.dataConverter),
      ...defined({ podLogs, timeoutPolicy, onSweep }),
    });
    const taken = Object.keys(activities).filter((name) => name in (options.activities ?? {}));
    if (taken.length > 0)
      throw new Error(
        `the Worker has activities of the same name as Holdfast's: ${taken.join(', ')}; rename them`,
      );
    // Without a connection the Worker would make one and close it while the Workers beside it still use it.
    if (!options.connection) this.#ownConnection = await NativeConnection.connect();
    const connection = options.connection ?? this.#ownConnection;
    this.#workerOptions = { ...options, ...defined({ connection }), activities };
    return withLivesTraced({
      ...this.#workerOptions,
      activities: { ...options.activities, ...activities },
      ...(await workflowsFor(options)),
    });
  }

  configureReplayWorker(options: ReplayWorkerOptions): ReplayWorkerOptions {
    return withLivesTraced(
      options.workflowsPath !== undefined || options.workflowBundle !== undefined
        ? options
        : { ...options, workflowsPath: workflowsPath() },
    );
  }

  async runWorker(worker: Worker, next: (worker: Worker) => Promise<void>): Promise<void> {
    if (!this.#workerOptions || this.#companions) return await next(worker);
    const { logger = QUIET, ...options } = this.#options;
    this.#companions = new Companions({
      ...options,
      heldBackAnswers: this.#heldBackAnswers,
      logger,
      workerOptions: this.#workerOptions,
    });
    try {
      await this.#companions.runWith(worker, next);
    } finally {
      await this.#ownConnection?.close();
    }
  }
}

export { workflowInterceptorsPath, workflowsPath };
