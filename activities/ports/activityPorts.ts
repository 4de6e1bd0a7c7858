import type { DeferredCompletions } from '../watcher/deferredCompletions.ts';
import type { TimeoutPolicy } from '../../core/input/timeoutPolicy.ts';
import type { SweepReport } from '../../core/contract/index.ts';
import type { CiServers } from './ciServer.ts';
import type { Compute } from './compute.ts';

/** Dependencies of the activities. */
export interface ActivityPorts {
  /**
   * Returns the ID of the Temporal namespace of the workflows.
   * @default read with the client of the activity
   */
  readonly temporalNamespaceId?: () => Promise<string>;
  readonly compute: Compute;
  readonly ciServers: CiServers;
  /**
   * Storage for the logs of failed runners.
   * @default no logs are kept
   */
  readonly podLogs?: PodLogs;
  /** Timeouts that the worker's configuration sets for scopes. */
  readonly timeoutPolicy?: TimeoutPolicy;
  /**
   * Whether payloads sent to Temporal are encrypted. If not, environment values in an input cause a
   * warning.
   * @default false
   */
  readonly encrypted?: boolean;
  /** Called with what the listener of a set's scale set has done, for metrics. */
  readonly onScaleSet?: (set: string, activity: ScaleSetActivity) => void;
  /** Called after every sweep, for metrics. */
  readonly onSweep?: (report: SweepReport) => void;
  /**
   * Completions that are sent later than the end of the activity function.
   * @default every activity completes when its function returns
   */
  readonly deferredCompletions?: DeferredCompletions;
}

/** Activity of a scale set's listener, for metrics. */
export interface ScaleSetActivity {
  /** Whether this process holds the session. */
  readonly up: boolean;
  /**
   * Whether this process has no more part in the session: the listener has ended, or another
   * process continues it.
   * @default false
   */
  readonly over?: boolean;
  /** Number of messages read. @default 0 */
  readonly messages?: number;
  /** Number of jobs acquired. @default 0 */
  readonly acquired?: number;
}

/** Storage for the last part of the log of a runner that did not succeed. */
export interface PodLogs {
  readonly maxBytes: number;
  keep(of: { readonly pod: string; readonly workflowId: string }, text: string): Promise<void>;
  /** Called if the log could not be read or stored. */
  failed(of: { readonly pod: string; readonly workflowId: string }, error: unknown): void;
}
