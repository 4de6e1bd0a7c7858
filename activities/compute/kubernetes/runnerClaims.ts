import type { V1PersistentVolumeClaim } from '@kubernetes/client-node';
import type { VolumeClaim } from '../../../core/contract/index.ts';
import type { ClaimWriter, RunnerIdentity } from '../../../core/domain/pod.ts';
import { ComputeError } from '../../ports/computeError.ts';
import type { ApiObjects } from './apiObjects.ts';
import { isOfInstallation, isOfRunner } from './ownership.ts';
import { matchesAny } from './podPolicy/patterns.ts';
import {
  formatClaimWriter,
  parseClaimWriters,
  persistentVolumeClaim,
  resolveClaimName,
} from './volumeClaims.ts';

/** Claims of runners: created for them, or mounted because the pod policy allows it. */
export class RunnerClaims {
  readonly #objects: ApiObjects;
  readonly #installation: string;
  readonly #allowed: readonly string[];

  /** @param allowed - patterns of the claims that every runner may mount */
  constructor(objects: ApiObjects, installation: string, allowed: readonly string[]) {
    this.#objects = objects;
    this.#installation = installation;
    this.#allowed = allowed;
  }

  /** Deletes the claims that runners of the workflow created. See `Compute.deleteClaims`. */
  async delete(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    namespace?: string,
  ): Promise<void> {
    for (const claim of claims) {
      if (claim.claim === undefined)
        await this.#objects.deleteOwn(
          'persistentvolumeclaims',
          namespace,
          resolveClaimName(identity, claim),
          { ...identity, attempt: 0 },
        );
    }
  }

  /** Records on the claims that a pod may still write to them. See `Compute.fenceClaims`. */
  async fence(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    writer: ClaimWriter,
    namespace?: string,
  ): Promise<void> {
    await this.#annotate(identity, claims, formatClaimWriter(writer), namespace);
  }

  /** Returns the pods that may still write to the claims. See `Compute.claimWriters`. */
  async writers(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    namespace?: string,
  ): Promise<ClaimWriter[]> {
    const found = await Promise.all(
      claims.map(async (claim) => await this.#usable(identity, claim, namespace)),
    );
    return found.flatMap((claim) => (claim === undefined ? [] : parseClaimWriters(claim)));
  }

  /** Removes the record of {@link fence}. See `Compute.releaseClaims`. */
  async release(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    { podUid }: ClaimWriter,
    namespace?: string,
  ): Promise<void> {
    const none = Object.fromEntries(
      Object.keys(formatClaimWriter({ podUid, node: '' })).map((key) => [key, null]),
    );
    await this.#annotate(identity, claims, none, namespace);
  }

  async #annotate(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    annotations: Readonly<Record<string, string | null>>,
    namespace: string | undefined,
  ): Promise<void> {
    for (const claim of claims)
      if ((await this.#usable(identity, claim, namespace)) !== undefined)
        await this.#objects.annotate(
          'persistentvolumeclaims',
          namespace,
          resolveClaimName(identity, claim),
          annotations,
        );
  }

  /** Creates a claim if it does not exist and is not one that must exist already. */
  async create(
    identity: RunnerIdentity,
    wanted: VolumeClaim,
    namespace: string | undefined,
  ): Promise<void> {
    const claim = persistentVolumeClaim(identity, wanted, this.#installation);
    if (claim === undefined) return;
    const owner = { ...identity, attempt: 0 };
    await this.#objects.createOrGet('persistentvolumeclaims', namespace, claim, owner);
  }

  /**
   * Returns the claim of the request.
   * @returns `undefined` if it does not exist
   * @throws ComputeError `foreign` if this runner may not mount it
   */
  async #usable(
    identity: RunnerIdentity,
    claim: VolumeClaim,
    namespace: string | undefined,
  ): Promise<V1PersistentVolumeClaim | undefined> {
    const name = resolveClaimName(identity, claim);
    const found = await this.#objects.get<V1PersistentVolumeClaim>(
      'persistentvolumeclaims',
      namespace,
      name,
    );
    if (found === undefined || this.#mayMount(found, identity, claim)) return found;
    throw new ComputeError(
      'foreign',
      `persistentvolumeclaim ${name} is not a claim of this installation, and not allowed by "claims" of the worker's pod policy; it is kept`,
    );
  }

  #mayMount(
    { metadata = {} }: V1PersistentVolumeClaim,
    identity: RunnerIdentity,
    { claim }: VolumeClaim,
  ): boolean {
    return claim === undefined
      ? isOfRunner(metadata, this.#installation, { ...identity, attempt: 0 })
      : isOfInstallation(metadata, this.#installation) || matchesAny(this.#allowed, claim);
  }
}
