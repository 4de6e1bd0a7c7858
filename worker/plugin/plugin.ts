/** Holdfast as a Temporal plugin, which makes a Worker run runners. */
import type { ClientOptions, ClientPlugin } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import {
  NativeConnection,
  type BundleOptions,
  type BundlerPlugin,
  type ReplayWorkerOptions,
  type Worker,
  type WorkerOptions,
  type WorkerPlugin,
} from '@temporalio/worker';
import {
  DeferredCompletions,
  type DeferralLimits,
} from '../../activities/watcher/deferredCompletions.ts';
import { createActivities } from '../../activities/index.ts';
import type { CiServers } from '../../activities/ports/ciServer.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import type { Logger } from '../../activities/ports/logger.ts';
import type { PodLogs, ScaleSetActivity } from '../../activities/ports/activityPorts.ts';
import type { SweepReport } from '../../core/contract/index.ts';
import type { TimeoutPolicy } from '../../core/input/timeoutPolicy.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { encrypts } from '../codec/dataConverter.ts';
import {
  workflowInterceptorsPath,
  workflowSourceOptions,
  workflowsPath,
} from './workflowBundle.ts';
import { AuxiliaryWorkers, isAuxiliaryWorker } from './auxiliaryWorkers.ts';
import type { SpanExportTarget } from '../tracing/spanSink.ts';
import { withWorkflowTracing, withTracedWorkflows, withTracing } from '../tracing/withTracing.ts';
import { checkSdkCopies } from './sdkCopies.ts';
import { checkWorkerDeploymentOptions } from './versioning.ts';
import type { CiQueue } from '../settings/ciQueues.ts';

/** Options of {@link HoldfastPlugin}. */
export interface HoldfastPluginOptions {
  /** Platform that runs the runners. */
  readonly compute: Compute;
  /** CI server client of each credential. */
  readonly ciServers: CiServers;
  /** Credentials whose task queues this worker serves. */
  readonly ciQueues: readonly CiQueue[];
  /**
   * Storage for the last log lines of runners that did not succeed.
   * @default no logs are kept
   */
  readonly podLogs?: PodLogs;
  /**
   * Timeouts by scope. Those in a runner's input take precedence.
   * @default none
   */
  readonly timeoutPolicy?: TimeoutPolicy;
  /**
   * Maximum times to defer notifications of workflows.
   * @default DEFERRAL_LIMITS
   * @internal
   */
  readonly deferralLimits?: DeferralLimits;
  /** Data converter of the Worker, of Clients that have this plugin, and of bundles. @default their own */
  readonly dataConverter?: DataConverter;
  /**
   * Target of the spans of runner workflows. The process must then have an OpenTelemetry tracer
   * provider, as the OpenTelemetry SDK registers it.
   * @default spans are not exported
   */
  readonly tracing?: SpanExportTarget;
  /** Logger of the plugin. @default no logging */
  readonly logger?: Logger;
  /**
   * Called for each wait that the watcher completed (`true`), or that was not pending (`false`).
   */
  readonly onCompletion?: (completed: boolean) => void;
  /** Called after every sweep of this worker. */
  readonly onSweep?: (report: SweepReport) => void;
  /** Called with what the listener of a set's scale set has done. */
  readonly onScaleSet?: (set: string, activity: ScaleSetActivity) => void;
}

/** State of the parts of the plugin. */
export interface HoldfastPluginStatus {
  /** Whether all Workers poll. */
  readonly polling: boolean;
  /** Whether the watch of pods is up to date. */
  readonly podCacheSynced: boolean;
  /** Number of running activities on all task queues. */
  readonly activitiesInFlight: number;
}

const IDLE_TIMEOUT: Logger = { info: () => undefined, warn: () => undefined };

/**
 * Adds the workflows and activities of Holdfast to a Worker. Next to it, on the same connection, it
 * runs one activity-only Worker for each credential's task queue, and the watcher of the pods. They
 * stop together with the Worker.
 *
 * A Worker that has its own workflows (`workflowsPath` or `workflowBundle`) keeps them: add `export
 * * from 'holdfast/workflows';` to its workflows file. Activities are added to the Worker's own; a
 * name in both is an error. The auxiliary Workers get the data converter and the interceptors that
 * are set when this plugin runs: name this plugin after those that set them.
 *
 * One instance serves one Worker, and any number of Clients and bundles.
 *
 * @experimental Temporal's plugin interfaces are experimental; `configureClient`,
 * `configureBundler` and `dataConverter` may change with them.
 */
export class HoldfastPlugin implements WorkerPlugin, ClientPlugin, BundlerPlugin {
  readonly name = 'holdfast.HoldfastPlugin';
  readonly #options: HoldfastPluginOptions;
  readonly #deferredCompletions: DeferredCompletions;
  #workerOptions: WorkerOptions | undefined;
  #ownConnection: NativeConnection | undefined;
  #companions: AuxiliaryWorkers | undefined;

  /**
   * Creates the plugin.
   * @throws Error if the process has loaded two copies of Temporal's SDK. It names both versions
   * and the fix
   */
  constructor(options: HoldfastPluginOptions) {
    checkSdkCopies();
    this.#options = options;
    this.#deferredCompletions = new DeferredCompletions(options.deferralLimits);
  }

  /** Returns the status for a readiness probe. */
  status(): HoldfastPluginStatus {
    return (
      this.#companions?.status() ?? { polling: false, podCacheSynced: false, activitiesInFlight: 0 }
    );
  }

  /**
   * Switches your Worker and the auxiliary ones to this connection, for example after a rotation of
   * certificates. Requests in flight may end on the previous connection, so close that later.
   */
  useConnection(connection: NativeConnection): void {
    this.#companions?.useConnection(connection);
  }

  /**
   * Drops the delayed notification that this runner is busy, because its workflow has received the
   * CI server's event about the job.
   * @internal
   */
  jobEventDelivered(workflowId: string): void {
    this.#companions?.jobEventDelivered(workflowId);
  }

  /**
   * Adds Holdfast to the options of a Worker.
   * @throws Error if another Worker uses the plugin, an activity has the name of one of Holdfast's,
   * or the workflows of a versioned Worker would be pinned by default
   */
  async configureWorker(given: WorkerOptions): Promise<WorkerOptions> {
    // A plugin that is set on the connection also receives the options of the Workers that it
    // creates.
    if (isAuxiliaryWorker(given)) return given;
    if (this.#workerOptions)
      throw new Error('this HoldfastPlugin is in use by another Worker: make one for each Worker');
    checkWorkerDeploymentOptions(given.workerDeploymentOptions);
    const { compute, ciServers, podLogs, timeoutPolicy, onSweep, onScaleSet, tracing } =
      this.#options;
    const options = await withTracing(this.#withDataConverter(given), tracing);
    const activities = createActivities({
      compute,
      ciServers,
      deferredCompletions: this.#deferredCompletions,
      encrypted: encrypts(options.dataConverter),
      ...omitUndefined({ podLogs, timeoutPolicy, onSweep, onScaleSet }),
    });
    const taken = Object.keys(activities).filter((name) => name in (options.activities ?? {}));
    if (taken.length > 0)
      throw new Error(
        `the Worker has activities of the same name as Holdfast's: ${taken.join(', ')}; rename them`,
      );
    // Without a connection the Worker would create one and close it while the auxiliary Workers
    // still use it.
    if (!options.connection) this.#ownConnection = await NativeConnection.connect();
    const connection = options.connection ?? this.#ownConnection;
    this.#workerOptions = { ...options, ...omitUndefined({ connection }), activities };
    return withWorkflowTracing({
      ...this.#workerOptions,
      activities: { ...options.activities, ...activities },
      ...(await workflowSourceOptions(options)),
    });
  }

  /**
   * Adds the data converter of this plugin to the options of a Client.
   * @throws Error if the Client has another one
   */
  configureClient(options: ClientOptions): ClientOptions {
    return this.#withDataConverter(options);
  }

  /**
   * Adds the parts of Holdfast's workflows to a bundle: the workflows themselves if the bundle
   * names none, their interceptors and the failure converter.
   */
  configureBundler(options: BundleOptions): BundleOptions {
    const { workflowInterceptorModules = [], ...others } = options;
    // It can be absent: the plugin may be the only option, and callers may not use types.
    const path = (options.workflowsPath as string | undefined) ?? workflowsPath();
    const { payloadConverterPath, failureConverterPath } = this.#options.dataConverter ?? {};
    return {
      ...omitUndefined({ payloadConverterPath, failureConverterPath }),
      ...others,
      workflowsPath: path,
      workflowInterceptorModules: withTracedWorkflows(workflowInterceptorModules),
    };
  }

  #withDataConverter<O extends { dataConverter?: DataConverter }>(options: O): O {
    const { dataConverter } = this.#options;
    if (dataConverter === undefined || options.dataConverter === dataConverter) return options;
    // With either one chosen silently, data that the other encrypts could be sent in clear text.
    if (options.dataConverter !== undefined)
      throw new Error(
        'dataConverter: must be set once, got one of the HoldfastPlugin and another one of the Worker or Client; remove one of them',
      );
    return { ...options, dataConverter };
  }

  configureReplayWorker(given: ReplayWorkerOptions): ReplayWorkerOptions {
    const options = this.#withDataConverter(given);
    return withWorkflowTracing(
      options.workflowsPath !== undefined || options.workflowBundle !== undefined
        ? options
        : { ...options, workflowsPath: workflowsPath() },
    );
  }

  async runWorker(worker: Worker, next: (worker: Worker) => Promise<void>): Promise<void> {
    if (!this.#workerOptions || this.#companions) return await next(worker);
    const { logger = IDLE_TIMEOUT, ...options } = this.#options;
    this.#companions = new AuxiliaryWorkers({
      ...options,
      deferredCompletions: this.#deferredCompletions,
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
