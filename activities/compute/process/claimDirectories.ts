import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { STATE_CLAIM } from '../../../core/domain/pod.ts';
import { claimName } from '../naming.ts';
import type { StateDirectories } from './podDirectory.ts';
import type { VolumeClaim } from '../../../core/contract/index.ts';
import type { PodRequest, RunnerIdentity } from '../../../core/domain/pod.ts';

/** A volume claim is a folder here; `mountPath` has no meaning, because a process sees the machine's own files. */
function claimFolder(
  folders: StateDirectories,
  identity: RunnerIdentity,
  { claim, name }: VolumeClaim,
): string {
  return join(folders.claims, claim === undefined ? claimName(identity, name) : `kept-${claim}`);
}

/** Makes the folders of a request's claims. @returns the variables that tell a workload which attempt it is, and where its state lies */
export async function makeClaimFolders(
  folders: StateDirectories,
  { identity, volumeClaims = [] }: PodRequest,
): Promise<Record<string, string>> {
  const env: Record<string, string> = { HOLDFAST_ATTEMPT: String(identity.attempt) };
  for (const claim of volumeClaims) {
    const folder = claimFolder(folders, identity, claim);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (claim.name === STATE_CLAIM) env['HOLDFAST_STATE_DIR'] = folder;
  }
  return env;
}

/** Removes the folders that are the life's own. */
export async function removeClaimFolders(
  folders: StateDirectories,
  identity: RunnerIdentity,
  claims: readonly VolumeClaim[],
): Promise<void> {
  for (const claim of claims) {
    if (claim.claim === undefined)
      await rm(claimFolder(folders, identity, claim), { recursive: true, force: true });
  }
}
