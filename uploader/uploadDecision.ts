/** Decision when the uploader starts, and when it exits without an upload. Pure. */

/** What the uploader knows of the step whose files it stores. */
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
 * | Started | Listens | Told to go | Then |
 * |---|---|---|---|
 * | yes | yes | any | wait: the step has its grace, and goes on writing |
 * | yes | no | any | upload: nothing of it is left that could write, however it ended |
 * | no | yes | any | wait: it is just starting |
 * | no | no | no | wait: its container comes up later than this one |
 * | no | no | yes | leave: it was never up, and the pod would wait for nothing |
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
