/** Volumes that outlive a set's runners: each of its slots has its own. */
import type { RunnerInput, VolumeClaim, RunnerSetInput } from '../contract/index.ts';

/** What a runner of the set is started with: `<claim>-<slot>` for every claim that is one runner's at a time. */
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

/** Do the runners of this template need slots? */
export function needsVolumeSlots(template: RunnerSetInput['template']): boolean {
  return template.volumeClaims?.some(isPerSlot) ?? false;
}

/** A named claim that Holdfast makes and that one runner at a time may use. One that exists already, or is made for many, is shared. */
function isPerSlot({ claim, storage, accessModes = [] }: VolumeClaim): boolean {
  return claim !== undefined && storage !== undefined && !accessModes.includes('ReadWriteMany');
}
