/** PersistentVolumeClaims of a runner. Pure. */
import type { V1PersistentVolumeClaim, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { claimName } from '../naming.ts';
import { identityAnnotations, installationLabels, workflowLabel } from './metadata.ts';
import type { VolumeClaim } from '../../../core/contract/index.ts';
import type { ClaimWriter, RunnerIdentity } from '../../../core/domain/pod.ts';
import { CLAIM_VOLUME_PREFIX, RESERVED_METADATA_PREFIX } from '../../../core/domain/podTemplate.ts';

/** Name of the object: the given one, or the life's own. */
export function resolveClaimName(identity: RunnerIdentity, request: VolumeClaim): string {
  return request.claim ?? claimName(identity, request.name);
}

/** The claim to make where it does not exist; `undefined` for one that has to exist. */
export function persistentVolumeClaim(
  identity: RunnerIdentity,
  request: VolumeClaim,
  installation: string,
): V1PersistentVolumeClaim | undefined {
  if (request.storage === undefined) return undefined;
  const annotations = {
    ...request.annotations,
    ...(request.claim === undefined ? identityAnnotations({ ...identity, attempt: 0 }) : {}),
  };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: resolveClaimName(identity, request),
      // The attempts of one life share it; a named one belongs to whoever uses it next.
      labels: installationLabels(
        installation,
        request.claim === undefined ? workflowLabel(identity) : {},
      ),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: omitUndefined({
      accessModes: [...(request.accessModes ?? ['ReadWriteOnce'])],
      resources: { requests: { storage: request.storage } },
      storageClassName: request.storageClass,
      dataSource: request.dataSource,
      selector: request.selector,
    }),
  };
}

/** On a claim, for each pod that may still write to it: its UID, and as the value its node. */
const WRITER_PREFIX = `${RESERVED_METADATA_PREFIX}writer.`;

/** The annotation that says so of this pod. */
export function formatClaimWriter({ podUid, node }: ClaimWriter): Record<string, string> {
  return { [`${WRITER_PREFIX}${podUid}`]: node };
}

/** What {@link formatClaimWriter} put there. */
export function parseClaimWriters({ metadata }: V1PersistentVolumeClaim): ClaimWriter[] {
  return Object.entries(metadata?.annotations ?? {}).flatMap(([key, node]) =>
    key.startsWith(WRITER_PREFIX) ? [{ podUid: key.slice(WRITER_PREFIX.length), node }] : [],
  );
}

/** The volumes of a pod's claims. */
export function claimVolumes(identity: RunnerIdentity, claims: readonly VolumeClaim[]): V1Volume[] {
  return claims.map((claim) => ({
    name: volumeName(claim),
    persistentVolumeClaim: { claimName: resolveClaimName(identity, claim) },
  }));
}

/** The runner container's mounts with those of its claims; a template's mount of the same path gives way. */
export function withClaimMounts(
  mounts: readonly V1VolumeMount[],
  claims: readonly VolumeClaim[],
): V1VolumeMount[] {
  const own = claims.map((claim) => ({ name: volumeName(claim), mountPath: claim.mountPath }));
  const paths = new Set(own.map(({ mountPath }) => mountPath));
  return [...mounts.filter(({ mountPath }) => !paths.has(mountPath)), ...own];
}

/** Template volumes cannot have this prefix (RESERVED_VOLUME_PREFIX). */
const volumeName = ({ name }: VolumeClaim): string => `${CLAIM_VOLUME_PREFIX}${name}`;
