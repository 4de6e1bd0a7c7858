/**
 * Restrictions on runs for untrusted changes: they run code of someone who has no access here.
 * Pure.
 */
import type { StepVolume } from '../contract/index.ts';

/**
 * Kinds of volumes without data of others: no Secret, no token, and no directory that a trusted run
 * reads later.
 */
export const UNTRUSTED_VOLUME_SOURCES: readonly string[] = ['configMap', 'downwardAPI', 'emptyDir'];

/** Returns the kinds of a volume by its fields. A valid volume has exactly one. */
export function volumeSources({
  name: _name,
  mountPath: _path,
  readOnly: _readOnly,
  ...source
}: StepVolume): string[] {
  return Object.keys(source);
}
