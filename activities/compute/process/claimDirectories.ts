import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { STATE_CLAIM } from '../../../core/domain/pod.ts';
import { claimName } from '../naming.ts';
import { ComputeError } from '../../ports/computeError.ts';
import type { StateDirectories } from './podDirectory.ts';
import type { VolumeClaim } from '../../../core/contract/index.ts';
import type { PodRequest, RunnerIdentity } from '../../../core/domain/pod.ts';

/** Valid names of claims, as in Kubernetes. */
const CLAIM_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/**
 * Returns the directory of a volume claim. `mountPath` has no meaning here, because a process sees
 * the files of the machine.
 * @throws ComputeError `invalid` if the name is not a valid name of a claim and could refer to a
 * path outside of the claims directory
 */
function claimFolder(
  folders: StateDirectories,
  identity: RunnerIdentity,
  { claim, name }: VolumeClaim,
): string {
  const folder = join(
    folders.claims,
    claim === undefined ? claimName(identity, name) : `kept-${claim}`,
  );
  if (!CLAIM_NAME.test(claim ?? name) || dirname(folder) !== folders.claims)
    throw new ComputeError(
      'invalid',
      `volumeClaims: "${claim ?? name}" must be the name of a claim: lower-case letters, digits, "-" and "."`,
    );
  return folder;
}

/**
 * Creates the directories of a request's claims.
 * @returns the variables with the attempt and the state directory of the workload
 */
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

/** Removes the directories that belong to the runner workflow. */
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
