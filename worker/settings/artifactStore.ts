import type { ArtifactStoreLocation } from '../../activities/compute/kubernetes/storeAccess.ts';
import type { JobClaimConfig } from '../../activities/compute/kubernetes/volumeClaims.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Settings } from './settings.ts';

/** Returns the location of the artifact store, or `undefined` if the settings name none. */
export function artifactStoreLocation(
  s: Pick<
    Settings,
    `HOLDFAST_STORE_${'VOLUME_CLAIM' | 'BUCKET' | 'PREFIX' | 'ENDPOINT' | 'REGION' | 'FORCE_PATH_STYLE' | 'SECRET'}`
  >,
): ArtifactStoreLocation | undefined {
  if (s.HOLDFAST_STORE_VOLUME_CLAIM !== undefined) return { claim: s.HOLDFAST_STORE_VOLUME_CLAIM };
  if (s.HOLDFAST_STORE_BUCKET === undefined) return undefined;
  const { HOLDFAST_STORE_ENDPOINT: endpoint, HOLDFAST_STORE_FORCE_PATH_STYLE: pathStyle } = s;
  return {
    bucket: s.HOLDFAST_STORE_BUCKET,
    region: s.HOLDFAST_STORE_REGION ?? 'us-east-1',
    pathStyle: pathStyle === undefined ? endpoint !== undefined : pathStyle === 'true',
    ...omitUndefined({
      folder: s.HOLDFAST_STORE_PREFIX,
      endpoint,
      secret: s.HOLDFAST_STORE_SECRET,
    }),
  };
}

/** Returns the claim that each job gets, or `undefined` if the settings name none. */
export function jobClaimConfig({
  HOLDFAST_JOB_CLAIM_SIZE: size,
  HOLDFAST_JOB_CLAIM_STORAGE_CLASS: storageClass,
}: Pick<Settings, `HOLDFAST_JOB_CLAIM_${'SIZE' | 'STORAGE_CLASS'}`>): JobClaimConfig | undefined {
  return size === undefined ? undefined : { size, ...omitUndefined({ storageClass }) };
}
