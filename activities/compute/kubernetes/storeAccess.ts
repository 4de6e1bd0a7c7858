/**
 * Access of a step's helper containers to the artifact store. With a claim, the uploader can access
 * only the directories of its step, and the restorer reads those of the same job run. Pure.
 */
import type { V1EnvVar, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import { BUCKET_KEY_FILES, type BucketConfig } from '../../artifacts/bucketConfig.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { jobRunOfStep, stepPrefix } from '../../../core/domain/artifactLayout.ts';
import { STORE_VOLUME } from '../../../core/domain/podTemplate.ts';

/** Location of the artifact store of this installation. */
export type ArtifactStoreLocation =
  /** PersistentVolumeClaim in the pods' namespace, that all nodes can mount. */
  | { readonly claim: string }
  /**
   * Bucket. `secret` is a Secret in the pods' namespace with `AWS_ACCESS_KEY_ID` and
   * `AWS_SECRET_ACCESS_KEY`.
   * @default the credentials of the pod itself
   */
  | (BucketConfig & { readonly secret?: string });

/** Environment variables and mounts that give a container access to the artifact store. */
export interface StoreAccess {
  readonly env: V1EnvVar[];
  readonly mounts: V1VolumeMount[];
}

const STORE_PATH = '/store';
/**
 * Mount path of the bucket's key. Unlike an environment variable, a file does not appear in `/proc`.
 */
const KEY_PATH = '/store-key';

/**
 * Returns the volumes of a pod and the access of its uploader and restorer.
 * @param path - directory of the step; see core/domain/artifactLayout.ts
 */
export function storeAccess(
  store: ArtifactStoreLocation,
  path: string,
  attempt: number,
): {
  readonly volumes: V1Volume[];
  readonly uploader: StoreAccess;
  readonly restorer: StoreAccess;
} {
  if ('claim' in store) {
    const env = variables({ HOLDFAST_UPLOAD_DIRECTORY: STORE_PATH });
    return {
      volumes: [{ name: STORE_VOLUME, persistentVolumeClaim: { claimName: store.claim } }],
      uploader: { env, mounts: [part(stepPrefix(path, attempt)), part(`shared/${path}`)] },
      // The restorer also reads the artifacts of other steps of the same run.
      restorer: {
        env,
        mounts: [part(`shared/${jobRunOfStep(path)?.path ?? path}`, { readOnly: true })],
      },
    };
  }
  const { bucket, folder, endpoint, region, pathStyle, secret } = store;
  const plain = omitUndefined({
    HOLDFAST_UPLOAD_BUCKET: bucket,
    HOLDFAST_UPLOAD_FOLDER: folder,
    HOLDFAST_UPLOAD_ENDPOINT: endpoint,
    HOLDFAST_UPLOAD_REGION: region,
    HOLDFAST_UPLOAD_PATH_STYLE: pathStyle ? 'true' : undefined,
  });
  if (secret === undefined) {
    const access = { env: variables(plain), mounts: [] };
    return { volumes: [], uploader: access, restorer: access };
  }
  const access = {
    env: variables({ ...plain, HOLDFAST_UPLOAD_KEY: KEY_PATH }),
    mounts: [{ name: STORE_VOLUME, mountPath: KEY_PATH, readOnly: true }],
  };
  const items = BUCKET_KEY_FILES.map((key) => ({ key, path: key }));
  const volume = { name: STORE_VOLUME, secret: { secretName: secret, items, defaultMode: 0o444 } };
  return { volumes: [volume], uploader: access, restorer: access };
}

/** Mounts one directory of the store at the same path, and nothing else. */
function part(folder: string, more: Pick<V1VolumeMount, 'readOnly'> = {}): V1VolumeMount {
  const subPath = folder.replace(/\/$/, '');
  return { name: STORE_VOLUME, mountPath: `${STORE_PATH}/${subPath}`, subPath, ...more };
}

/** Returns environment variables with `$` escaped, because the kubelet expands `$(NAME)`. */
export function variables(values: Readonly<Record<string, string>>): V1EnvVar[] {
  return Object.entries(values).map(([name, value]) => ({
    name,
    value: value.replaceAll('$', '$$$$'),
  }));
}
