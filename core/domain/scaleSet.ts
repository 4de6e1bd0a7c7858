/**
 * Data of a scale set: a queue of jobs that the CI server assigns to a set of single-use runners.
 * Only GitHub has them. https://github.com/actions/scaleset
 */
import type { RunnerGroupRef, Scope } from './ciServer.ts';

/** Scale set to create or to find. The CI server identifies it by name in its runner group. */
export interface ScaleSetRequest {
  readonly scope: Scope;
  readonly name: string;
  readonly group: RunnerGroupRef;
  /** Labels that jobs request. Empty: the name of the scale set is its label. */
  readonly labels: readonly string[];
  /**
   * Label that marks the scale sets of this installation. One without it belongs to another system.
   */
  readonly mark: string;
  /**
   * Whether to take over a scale set that another system created.
   * @default false
   */
  readonly adopt?: boolean;
}

/** Scale set at the CI server. */
export interface ScaleSet {
  readonly id: number;
  readonly name: string;
  readonly labels: readonly string[];
  /** Requested labels that it does not have. The server may support one label only. */
  readonly droppedLabels: readonly string[];
}

/** Numbers of a scale set at one moment. They are absolute, so a lost message changes nothing. */
export interface ScaleSetStatistics {
  /** Jobs that no scale set has acquired. */
  readonly available: number;
  /** Jobs that are assigned to the scale set, waiting or running. This is its demand. */
  readonly assigned: number;
  readonly running: number;
  readonly registeredRunners: number;
  readonly busyRunners: number;
  readonly idleRunners: number;
}

/** One event about a job, as a message of the scale set contains it. */
export type ScaleSetEvent =
  | { readonly kind: 'available'; readonly requestId: number }
  | { readonly kind: 'assigned'; readonly requestId: number }
  | { readonly kind: 'started'; readonly requestId: number; readonly runnerName: string }
  | {
      readonly kind: 'completed';
      readonly requestId: number;
      /** Absent if the job never had a runner. */
      readonly runnerName?: string;
      /** Result as the server reports it, such as `succeeded`. */
      readonly result: string;
    };

/** One message of a scale set's queue. It is sent again until it is acknowledged. */
export interface ScaleSetMessage {
  readonly id: number;
  readonly statistics: ScaleSetStatistics;
  readonly events: readonly ScaleSetEvent[];
}
