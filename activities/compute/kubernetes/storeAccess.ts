/** How the containers beside a step get at the store: as far as that step, and no further where the store can be cut. Pure. */
import type { V1EnvVar, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import type { BucketConfig } from '../../artifacts/bucketConfig.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { jobRunOfStep, stepPrefix } from '../../../core/domain/artifactLayout.ts';
import { STORE_VOLUME } from '../../../core/domain/podTemplate.ts';

/** Where this installation keeps what steps leave. */
export type ArtifactStoreLocation =
  /** PersistentVolumeClaim in the pods' namespace, which all nodes may mount. */
  | { readonly claim: string }
  /** `secret`: name of a Secret in the pods' namespace with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`. @default what the pod itself is */
  | (BucketConfig & { readonly secret?: string });

export interface StoreAccess {
  readonly env: V1EnvVar[];
  readonly mounts: V1VolumeMount[];
}

const STORE_PATH = '/store';
const KEYS = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];

/** @param path - of the step, see core/domain/artifactLayout.ts */
export function storeAccess(
  place: ArtifactStoreLocation,
  path: string,
  attempt: number,
): {
  readonly volumes: V1Volume[];
  readonly uploader: StoreAccess;
  readonly restorer: StoreAccess;
} {
  if ('claim' in place) {
    const env = variables({ HOLDFAST_UPLOAD_DIRECTORY: STORE_PATH });
    return {
      volumes: [{ name: STORE_VOLUME, persistentVolumeClaim: { claimName: place.claim } }],
      uploader: { env, mounts: [part(stepPrefix(path, attempt)), part(`shared/${path}`)] },
      // What other steps of the same run have left, too.
      restorer: {
        env,
        mounts: [part(`shared/${jobRunOfStep(path)?.path ?? path}`, { readOnly: true })],
      },
    };
  }
  const { bucket, folder, endpoint, region, pathStyle, secret } = place;
  const plain = omitUndefined({
    HOLDFAST_UPLOAD_BUCKET: bucket,
    HOLDFAST_UPLOAD_FOLDER: folder,
    HOLDFAST_UPLOAD_ENDPOINT: endpoint,
    HOLDFAST_UPLOAD_REGION: region,
    HOLDFAST_UPLOAD_PATH_STYLE: pathStyle ? 'true' : undefined,
  });
  const access = {
    env: [
      ...variables(plain),
      ...(secret === undefined ? [] : KEYS.map((key) => fromSecret(secret, key))),
    ],
    mounts: [],
  };
  return { volumes: [], uploader: access, restorer: access };
}

/** A folder of the store at its own place in it, and nothing beside it. */
function part(folder: string, more: Pick<V1VolumeMount, 'readOnly'> = {}): V1VolumeMount {
  const subPath = folder.replace(/\/$/, '');
  return { name: STORE_VOLUME, mountPath: `${STORE_PATH}/${subPath}`, subPath, ...more };
}

/** The kubelet would read `$(NAME)` in them as its own. */
export function variables(values: Readonly<Record<string, string>>): V1EnvVar[] {
  return Object.entries(values).map(([name, value]) => ({
    name,
    value: value.replaceAll('$', '$$$$'),
  }));
}

function fromSecret(name: string, key: string): V1EnvVar {
  return { name: key, valueFrom: { secretKeyRef: { name, key } } };
}
