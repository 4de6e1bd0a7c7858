/** What the run of an outsider's change may have: it runs what somebody has written whom nobody here has let in. Pure. */
import type { JobInput, StepInput, StepVolume } from '../contract/index.ts';

/** Kinds of volumes that hold nothing of others: neither a Secret, nor a token, nor a folder that a trusted run reads later. */
export const OUTSIDERS_VOLUMES: readonly string[] = ['configMap', 'downwardAPI', 'emptyDir'];

/** The kinds of a volume, by its fields; one that is sound has one. */
export function volumeKinds({
  name: _name,
  mountPath: _path,
  readOnly: _readOnly,
  ...source
}: StepVolume): string[] {
  return Object.keys(source);
}

export const isForOutsiders = (volume: StepVolume): boolean =>
  volumeKinds(volume).every((kind) => OUTSIDERS_VOLUMES.includes(kind));

/** The job without all other volumes: its steps find nothing where they would be. */
export function forOutsiders(job: JobInput): JobInput {
  const stripped = <Step extends StepInput>(step: Step): Step =>
    step.volumes === undefined ? step : { ...step, volumes: step.volumes.filter(isForOutsiders) };
  const { pre, test, post } = job;
  return {
    ...job,
    test: test.map(stripped),
    ...(pre === undefined ? {} : { pre: pre.map(stripped) }),
    ...(post === undefined ? {} : { post: post.map(stripped) }),
  };
}
