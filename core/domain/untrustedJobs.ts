/** What the run of an outsider's change may have: it runs what somebody has written whom nobody here has let in. Pure. */
import type { StepVolume } from '../contract/index.ts';

/** Kinds of volumes that hold nothing of others: neither a Secret, nor a token, nor a folder that a trusted run reads later. */
export const UNTRUSTED_VOLUME_SOURCES: readonly string[] = ['configMap', 'downwardAPI', 'emptyDir'];

/** The kinds of a volume, by its fields; one that is sound has one. */
export function volumeSources({
  name: _name,
  mountPath: _path,
  readOnly: _readOnly,
  ...source
}: StepVolume): string[] {
  return Object.keys(source);
}
