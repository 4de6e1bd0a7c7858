/** PersistentVolumeClaims of a runner. Pure. */
import type { V1PersistentVolumeClaim, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { claimName } from '../naming.ts';
import { identityAnnotations, installationLabels, workflowLabel } from './metadata.ts';
import type { VolumeClaim } from '../../../core/contract/index.ts';
import { JOB_CLAIM, type ClaimWriter, type RunnerIdentity } from '../../../core/domain/pod.ts';
import {
  CLAIM_VOLUME_PREFIX,
  RESERVED_METADATA_PREFIX,
  STEP_PATHS,
} from '../../../core/domain/podTemplate.ts';

/** Claim that each job gets for the files of its steps. */
export interface JobClaimConfig {
  /** Size, as a quantity of Kubernetes. */
  readonly size: string;
  /** @default the cluster's default class */
  readonly storageClass?: string;
}

/** Returns the name of a claim: the given one, or the runner workflow's own. */
export function resolveClaimName(identity: RunnerIdentity, request: VolumeClaim): string {
  return request.claim ?? claimName(identity, request.name);
}

/** Returns the claim that a job gets for the files of its steps. */
export function jobVolumeClaim({ size, storageClass }: JobClaimConfig): VolumeClaim {
  return {
    name: JOB_CLAIM,
    mountPath: STEP_PATHS.shared,
    storage: size,
    ...omitUndefined({ storageClass }),
  };
}

/** Returns the claim to create if it does not exist, or `undefined` if it must already exist. */
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
      // All attempts of the runner workflow share an own claim. A named claim may be used by any
      // runner.
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

/**
 * Prefix of an annotation for each pod that may still write to a claim, followed by its UID. The
 * value is its node.
 */
const WRITER_PREFIX = `${RESERVED_METADATA_PREFIX}writer.`;

/** Returns the annotation of a pod that may still write to a claim. */
export function formatClaimWriter({ podUid, node }: ClaimWriter): Record<string, string> {
  return { [`${WRITER_PREFIX}${podUid}`]: node };
}

/** Reads the annotations of {@link formatClaimWriter}. */
export function parseClaimWriters({ metadata }: V1PersistentVolumeClaim): ClaimWriter[] {
  return Object.entries(metadata?.annotations ?? {}).flatMap(([key, node]) =>
    key.startsWith(WRITER_PREFIX) ? [{ podUid: key.slice(WRITER_PREFIX.length), node }] : [],
  );
}

/** Returns the volumes of the claims of a pod. */
export function claimVolumes(identity: RunnerIdentity, claims: readonly VolumeClaim[]): V1Volume[] {
  return claims.map((claim) => ({
    name: volumeName(claim),
    persistentVolumeClaim: { claimName: resolveClaimName(identity, claim) },
  }));
}

/**
 * Adds the mounts of the claims to those of the runner container. They replace mounts of the
 * template with the same path.
 */
export function withClaimMounts(
  mounts: readonly V1VolumeMount[],
  claims: readonly VolumeClaim[],
): V1VolumeMount[] {
  const own = claims.map((claim) => ({ name: volumeName(claim), mountPath: claim.mountPath }));
  const paths = new Set(own.map(({ mountPath }) => mountPath));
  return [...mounts.filter(({ mountPath }) => !paths.has(mountPath)), ...own];
}

/**
 * Returns the volume name of a claim. Volumes of a template must not have this prefix
 * (RESERVED_VOLUME_PREFIX).
 */
const volumeName = ({ name }: VolumeClaim): string => `${CLAIM_VOLUME_PREFIX}${name}`;
