/** Volumes that outlive the runners of a set. Each slot of the set has volumes of its own. */
import type { RunnerInput, VolumeClaim, RunnerSetInput } from '../contract/index.ts';

/**
 * Returns the input of a runner of the set, with `<claim>-<slot>` for every claim that only one
 * runner may use at a time.
 */
export function withSlotClaims(
  template: RunnerSetInput['template'],
  set: string,
  slot: number | undefined,
): RunnerInput {
  const volumeClaims = template.volumeClaims?.map((one) =>
    slot !== undefined && isPerSlot(one) ? { ...one, claim: `${one.claim}-${slot}` } : one,
  );
  return { ...template, set, ...(volumeClaims && { volumeClaims }) };
}

/** Whether the runners of this template need slots. */
export function needsVolumeSlots(template: RunnerSetInput['template']): boolean {
  return template.volumeClaims?.some(isPerSlot) ?? false;
}

/**
 * Whether a claim is named, created by Holdfast, and usable by one runner at a time. A claim that
 * already exists, or is created for many, is shared.
 */
function isPerSlot({ claim, storage, accessModes = [] }: VolumeClaim): boolean {
  return claim !== undefined && storage !== undefined && !accessModes.includes('ReadWriteMany');
}
