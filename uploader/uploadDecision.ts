/** Decides when the uploader starts the upload, and when it exits without one. Pure. */

/** Facts about the step whose files the uploader stores. */
export interface StepFacts {
  /**
   * Whether the step's supervisor was up: it has started a log, or recorded its start or its end.
   * Its probe port was open by then.
   */
  readonly started: boolean;
  /** Whether the step's supervisor accepts connections. */
  readonly probeListening: boolean;
  /**
   * Whether the uploader has received a signal. The kubelet signals every container of a pod that
   * is deleted.
   */
  readonly terminationRequested: boolean;
}

/** Next action of the uploader. `leave`: exit without an upload. */
export type UploadAction = 'wait' | 'upload' | 'leave';

/**
 * Decides the next action:
 *
 * - started, listening: wait. The step has its grace period and continues to write.
 * - started, not listening: upload. No process of the step is left that could write, however it
 *   ended.
 * - not started, listening: wait. The step is starting.
 * - not started, not listening, no termination requested: wait. The step's container starts
 *   later than this one.
 * - not started, not listening, termination requested: leave. The step never started, and the
 *   pod would wait for nothing.
 */
export function uploadAction({
  started,
  probeListening,
  terminationRequested,
}: StepFacts): UploadAction {
  if (probeListening) return 'wait';
  if (started) return 'upload';
  return terminationRequested ? 'leave' : 'wait';
}
