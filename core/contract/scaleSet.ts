/**
 * Public names of the `scaleSetListener` workflow, which reads the messages of a GitHub scale set
 * for its runner set: its input, its signals and the reports that it sends.
 */
import { defineSignal } from '@temporalio/workflow';
import type { RunnerGroupRef, Scope } from '../domain/ciServer.ts';

/** Workflow type of the listener of a scale set. */
export const SCALE_SET_LISTENER_WORKFLOW = 'scaleSetListener';

/** Returns the workflow id of a set's listener: one per set. */
export const scaleSetListenerWorkflowId = (set: string): string => `scale-set-${set}`;

/** Input of the `scaleSetListener` workflow. Its set starts it. */
export interface ScaleSetListenerInput {
  /** Name of the runner set. */
  set: string;
  scope: Scope;
  credential: string;
  group: RunnerGroupRef;
  /** Labels of the scale set. Empty: its name is its label. */
  labels: string[];
  /** Name of the scale set at GitHub. */
  name: string;
  /** Whether to take over a scale set that another system created. @default false */
  adopt?: true;
}

/** Numbers of a scale set at one moment, as GitHub reports them. */
export interface ScaleSetNumbers {
  /** Jobs that are assigned to the scale set, waiting or running. */
  assigned: number;
  running: number;
}

/**
 * Report about a scale set, which its listener sends to the runner set. Reports may arrive late,
 * twice and out of order.
 */
export interface ScaleSetReport {
  /** Time of sending, by the worker's clock (ms since the epoch). */
  at: number;
  /**
   * Position of the numbers: the time at which the session was opened (ms since the epoch), and the
   * last message. Numbers of an earlier position are ignored. Absent with `problem` alone.
   */
  position?: { openedAt: number; messageId: number };
  numbers?: ScaleSetNumbers;
  /** Names of the runners whose jobs have started. */
  started: string[];
  /** Names of the runners whose jobs have completed. */
  completed: string[];
  /** Reason why the scale set cannot be read now, in one sentence. Absent: it can be read. */
  problem?: string;
}
/** Signal to a runner set with a report about its scale set. */
export const scaleSetReportSignal = defineSignal<[ScaleSetReport]>('scaleSetReport');

/** Signal to the listener of a scale set: the declaration of its runner set has changed. */
export const listenerChangedSignal =
  defineSignal<[{ input: ScaleSetListenerInput }]>('listenerChanged');

/** Memo key of the hash of a listener's input, by which its set notices that it has changed. */
export const LISTENER_INPUT_MEMO = 'input';

/**
 * Memo key of the number of jobs that a set can run at a time. Present while the set takes its
 * demand from a scale set.
 */
export const SET_CAPACITY_MEMO = 'capacity';
