/**
 * Parts of a pod that store the artifacts of a job's step. They are directories that the runner
 * container shares with an uploader container. Pure. docs/jobs.md has the rules.
 */
import type {
  V1Container,
  V1PodSecurityContext,
  V1SecurityContext,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import {
  sharedDirKey,
  sharedDirKeys,
  ARTIFACT_NAMES,
  stepPrefix,
} from '../../../core/domain/artifactLayout.ts';
import { formatDuration } from '../../../core/domain/duration.ts';
import type { PodRequest, StorageRequest } from '../../../core/domain/pod.ts';
import {
  JOB_VOLUME,
  RUNNER_CONTAINER,
  SHARED_DIR_CONTAINER,
  STEP_PATHS,
  UPLOADER_CONTAINER,
} from '../../../core/domain/podTemplate.ts';
import { mergeTemplates } from './mergeTemplates.ts';
import { UPLOAD_TIMEOUT_ANNOTATION } from './metadata.ts';
import { RESTRICTED_SECURITY_CONTEXT } from './podSecurity.ts';
import {
  storeAccess,
  variables,
  type ArtifactStoreLocation,
  type StoreAccess,
} from './storeAccess.ts';

/** Location of the artifact store of this installation, and the image of its uploader. */
export interface ArtifactStoreConfig {
  readonly place: ArtifactStoreLocation;
  /** Image that contains the supervisor's directory with the uploader at `/opt/holdfast`. */
  readonly image: string;
}

const SECRETS_PATH = '/secrets';
/**
 * Prefix of the volumes for Secrets of which a step has variables. Only the uploader mounts them.
 */
const MASKED_VOLUME_PREFIX = 'holdfast-masked-';
const IMAGE_FOLDER = '/opt/holdfast';
const PROGRAM = [
  `${IMAGE_FOLDER}/ld.so`,
  '--library-path',
  `${IMAGE_FOLDER}/lib`,
  `${IMAGE_FOLDER}/node`,
  `${IMAGE_FOLDER}/uploader.mjs`,
];
/**
 * Resources of the uploader. A namespace with a quota requires requests and limits. For an upload
 * to a bucket, each of several large files takes about 30 MB of memory.
 */
const resourcesFor = (place: ArtifactStoreLocation): NonNullable<V1Container['resources']> => ({
  requests: { cpu: '10m', memory: '64Mi' },
  limits: { cpu: '1', memory: 'claim' in place ? '256Mi' : '512Mi' },
});
const MOUNTS = {
  shared: { name: 'holdfast-shared', mountPath: STEP_PATHS.shared },
  artifacts: { name: 'holdfast-artifacts', mountPath: STEP_PATHS.artifacts },
  records: { name: 'holdfast-records', mountPath: STEP_PATHS.records },
} as const;
const FOLDERS = { SHARED_DIR: STEP_PATHS.shared, ARTIFACT_DIR: STEP_PATHS.artifacts };
/** Variables of the supervisor with the files that it records for the uploader. */
const RECORD_FILES = {
  HOLDFAST_START_FILE: `${STEP_PATHS.records}/${ARTIFACT_NAMES.started}`,
  HOLDFAST_MARKER_FILE: `${STEP_PATHS.records}/${ARTIFACT_NAMES.finished}`,
  HOLDFAST_LOG_FILE: `${STEP_PATHS.records}/${ARTIFACT_NAMES.log}`,
  HOLDFAST_SHARED_DIR: STEP_PATHS.shared,
  HOLDFAST_SHARED_SNAPSHOTS: STEP_PATHS.records,
};

/**
 * Group of the files in a job's claim, which may have any value. A new volume belongs to root, and
 * the images of steps may have any user.
 */
const JOB_CLAIM_GROUP = 1_000;

/** Parts of a pod that keep the artifacts of its step. */
export interface StepStoragePodParts {
  readonly annotations: Record<string, string>;
  readonly initContainers: V1Container[];
  /** Containers that must precede the runner, so that they run when it starts. */
  readonly containers: V1Container[];
  readonly volumes: V1Volume[];
  readonly runner: Partial<V1Container>;
  /** Fields of the pod's security context that its template may override. @default none */
  readonly securityContext?: V1PodSecurityContext;
}

/**
 * Adds the uploader and the restorer of a step to its pod.
 * @param runner - runner container with the supervisor, whose probes use `port`
 * @param volumes - volumes of the template. In the stored output, values are masked that come from
 * Secrets that the runner mounts, or that its variables refer to
 */
export function withStepStorage(
  runner: Partial<V1Container>,
  { storage, identity }: Pick<PodRequest, 'identity'> & { storage: StorageRequest },
  settings: ArtifactStoreConfig,
  {
    port,
    volumes,
    ofPod,
  }: { port: number; volumes: readonly V1Volume[]; ofPod: V1PodSecurityContext | undefined },
): StepStoragePodParts {
  const { path, timeoutMs } = storage;
  const ofVariables = secretVolumes(runner);
  const secrets = [
    ...secretMounts(runner, volumes),
    ...ofVariables.map(({ name }) => secretMount(name)),
  ];
  const access = storeAccess(settings.place, path, identity.attempt);
  const step: StoredStep = {
    storage,
    attempt: identity.attempt,
    own: {
      image: settings.image,
      resources: resourcesFor(settings.place),
      securityContext: rightsOf(runner.securityContext, ofPod),
    },
  };
  return {
    annotations: {
      [UPLOAD_TIMEOUT_ANNOTATION]: formatDuration(timeoutMs),
      'kubectl.kubernetes.io/default-container': RUNNER_CONTAINER,
    },
    initContainers: [restoreContainer(step, access.restorer)],
    containers: [uploaderContainer(step, access.uploader, { port, secrets })],
    volumes: [
      ...access.volumes,
      ...ofVariables,
      ...Object.values(MOUNTS).map(({ name }): V1Volume => ({ name, emptyDir: {} })),
    ],
    runner: {
      ...runner,
      env: [...(runner.env ?? []), ...variables({ ...FOLDERS, ...RECORD_FILES })],
      volumeMounts: [...(runner.volumeMounts ?? []), ...Object.values(MOUNTS)],
    },
  };
}

/** Step whose artifacts are stored, and the fields that its uploader and restorer have in common. */
interface StoredStep {
  readonly storage: StorageRequest;
  readonly attempt: number;
  readonly own: Pick<V1Container, 'image' | 'resources' | 'securityContext'>;
}

/**
 * Returns the container that uploads the artifacts.
 * @param secrets - mounts of the Secrets whose values are masked in the stored output
 */
function uploaderContainer(
  { storage: { path, timeoutMs }, attempt, own }: StoredStep,
  access: StoreAccess,
  { port, secrets }: { readonly port: number; readonly secrets: readonly V1VolumeMount[] },
): V1Container {
  return {
    name: UPLOADER_CONTAINER,
    ...own,
    command: PROGRAM,
    env: [
      ...variables({
        ...FOLDERS,
        HOLDFAST_UPLOAD_TO: stepPrefix(path, attempt),
        HOLDFAST_UPLOAD_SHARED_KEY: sharedDirKey(path, attempt),
        HOLDFAST_UPLOAD_RECORDS: STEP_PATHS.records,
        ...(secrets.length > 0 ? { HOLDFAST_UPLOAD_SECRETS: SECRETS_PATH } : {}),
        HOLDFAST_UPLOAD_TIMEOUT: `${timeoutMs}ms`,
        HOLDFAST_PROBE_PORT: String(port),
      }),
      ...access.env,
    ],
    volumeMounts: [
      ...access.mounts,
      ...Object.values(MOUNTS).map((mount) => ({ ...mount, readOnly: true })),
      ...secrets,
    ],
  };
}

/** Returns the init container that restores the shared directory. */
function restoreContainer(
  { storage: { path, sharedDirSources }, attempt, own }: StoredStep,
  access: StoreAccess,
): V1Container {
  return {
    name: SHARED_DIR_CONTAINER,
    ...own,
    command: [...PROGRAM, 'restore'],
    env: [
      ...variables({
        HOLDFAST_UPLOAD_RECORDS: STEP_PATHS.records,
        HOLDFAST_UPLOAD_SHARED_SOURCES: [
          ...sharedDirKeys(path, attempt - 1),
          ...sharedDirSources,
        ].join(' '),
      }),
      ...access.env,
    ],
    volumeMounts: [...access.mounts, MOUNTS.records],
  };
}

/**
 * Adds SHARED_DIR and ARTIFACT_DIR as directories of the claim of the step's job. All steps of the
 * job use the same two directories, one step at a time.
 * @param claimName - name of the claim
 */
export function withJobClaim(runner: Partial<V1Container>, claimName: string): StepStoragePodParts {
  const mount = ({ mountPath }: V1VolumeMount, subPath: string): V1VolumeMount => ({
    name: JOB_VOLUME,
    mountPath,
    subPath,
  });
  return {
    annotations: {},
    initContainers: [],
    containers: [],
    volumes: [{ name: JOB_VOLUME, persistentVolumeClaim: { claimName } }],
    // Otherwise every step would change the modes of all files, such as those of private keys.
    securityContext: { fsGroup: JOB_CLAIM_GROUP, fsGroupChangePolicy: 'OnRootMismatch' },
    runner: {
      ...runner,
      env: [...(runner.env ?? []), ...variables(FOLDERS)],
      volumeMounts: [
        ...(runner.volumeMounts ?? []),
        mount(MOUNTS.shared, 'shared'),
        mount(MOUNTS.artifacts, 'artifacts'),
      ],
    },
  };
}

/**
 * Adds an ARTIFACT_DIR that is not stored, so that commands that write to it work. It is deleted
 * with the pod.
 */
export function withUnstoredArtifacts(runner: Partial<V1Container>): StepStoragePodParts {
  const { name } = MOUNTS.artifacts;
  return {
    annotations: {},
    initContainers: [],
    containers: [],
    volumes: [{ name, emptyDir: {} }],
    runner: {
      ...runner,
      env: [...(runner.env ?? []), ...variables({ ARTIFACT_DIR: STEP_PATHS.artifacts })],
      volumeMounts: [...(runner.volumeMounts ?? []), MOUNTS.artifacts],
    },
  };
}

/** Returns a mount for each Secret that the runner mounts, in a directory of its own. */
function secretMounts(
  { volumeMounts = [] }: Partial<V1Container>,
  volumes: readonly V1Volume[],
): V1VolumeMount[] {
  const mounted = new Set(volumeMounts.map(({ name }) => name));
  return volumes
    .filter(
      ({ name, secret, projected }) =>
        mounted.has(name) &&
        (secret !== undefined ||
          projected?.sources?.some((source) => source.secret !== undefined) === true),
    )
    .map(({ name }) => secretMount(name));
}

const secretMount = (name: string): V1VolumeMount => ({
  name,
  mountPath: `${SECRETS_PATH}/${name}`,
  readOnly: true,
});

/** Returns a volume for each Secret of which the runner has variables. */
function secretVolumes({ env = [], envFrom = [] }: Partial<V1Container>): V1Volume[] {
  const names = [
    ...env.map(({ valueFrom }) => valueFrom?.secretKeyRef?.name),
    ...envFrom.map(({ secretRef }) => secretRef?.name),
  ].flatMap((name) => name ?? []);
  // The step itself decides whether a Secret may be missing.
  return [...new Set(names)].map((secretName, index) => ({
    name: `${MASKED_VOLUME_PREFIX}${index}`,
    secret: { secretName, optional: true },
  }));
}

/**
 * Returns the security context of the uploader. It runs as the user of the step, if that is known,
 * because this user can read everything that the step writes. Most images without a user run as
 * root. Root without capabilities can read the files of root, and files of other users only if they
 * are readable by everyone.
 */
function rightsOf(
  ofRunner: V1SecurityContext | undefined,
  ofPod: V1PodSecurityContext | undefined,
): V1SecurityContext {
  const user = ofRunner?.runAsUser ?? ofPod?.runAsUser;
  const isRoot =
    user === 0 || (user === undefined && (ofRunner?.runAsNonRoot ?? ofPod?.runAsNonRoot) !== true);
  return mergeTemplates(
    RESTRICTED_SECURITY_CONTEXT,
    isRoot ? { runAsNonRoot: false, runAsUser: 0 } : omitUndefined({ runAsUser: user }),
  ) as V1SecurityContext;
}
