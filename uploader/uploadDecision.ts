/** When the uploader begins, and when it leaves without. Pure. */

export interface StepFacts {
  /** The step's supervisor was up: it has begun a log, or noted its start or its end, and listened by then. */
  readonly started: boolean;
  /** The step's supervisor can be connected to. */
  readonly probeListening: boolean;
  /** The uploader was sent a signal: the kubelet sends one to every container of a pod that is to go. */
  readonly terminationRequested: boolean;
}

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
