/**
 * Names, labels, variables and directories of a pod that belong to Holdfast and that a user's
 * template must not use.
 */

import { isRegistrationVariable } from './runnerKinds/runnerKinds.ts';

/**
 * Container that runs the CI runner. A container with this name in a template is merged under the
 * fields that Holdfast sets.
 */
export const RUNNER_CONTAINER = 'runner';
/** Init container that copies the supervisor into the pod. */
export const SUPERVISOR_CONTAINER = 'holdfast-supervisor';
/**
 * Init container in which a runner with a registration token registers. A container with this name
 * in a template is merged under the fields that Holdfast sets.
 */
export const REGISTER_CONTAINER = 'holdfast-register';
/** Container of a step's pod that uploads its artifacts. */
export const UPLOADER_CONTAINER = 'holdfast-uploader';
/** Init container that restores the SHARED_DIR of earlier steps. */
export const SHARED_DIR_CONTAINER = 'holdfast-shared';
/** Prefix of the labels and annotations that belong to Holdfast. */
export const RESERVED_METADATA_PREFIX = 'holdfast.dev/';
/** Label with the name of the set to which a runner belongs. */
export const SET_LABEL = `${RESERVED_METADATA_PREFIX}set`;
/** Recommended label of Kubernetes for the tool that manages an object. */
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
/** Prefix of the volumes that belong to Holdfast. */
export const RESERVED_VOLUME_PREFIX = 'holdfast-';
/** Prefix of the volumes for the runner's own claims, which its other containers may mount too. */
export const CLAIM_VOLUME_PREFIX = `${RESERVED_VOLUME_PREFIX}claim-`;
/** Volume with the claim of a step's job. */
export const JOB_VOLUME = `${RESERVED_VOLUME_PREFIX}job`;
/** Volume with the claim of the artifact store, or with the key of its bucket. */
export const STORE_VOLUME = `${RESERVED_VOLUME_PREFIX}store`;

const RESERVED_ENV_PREFIX = 'HOLDFAST_';

/** Whether Holdfast itself sets the variable of the runner container. */
export function isReservedEnv(name: string): boolean {
  return name.startsWith(RESERVED_ENV_PREFIX) || isRegistrationVariable(name);
}

/** Directory with the files of a runner's registration. */
export const REGISTRATION_PATH = '/holdfast-registration';
/**
 * Directories of a job's step: SHARED_DIR for later steps, ARTIFACT_DIR for its artifacts, and the
 * records of its supervisor.
 */
export const STEP_PATHS = {
  shared: '/holdfast-shared',
  artifacts: '/holdfast-artifacts',
  records: '/holdfast-records',
} as const;
/** Directory with the trusted certificate authorities of the runner container. */
export const CA_PATH = '/holdfast-ca';
/** Directories of the runner container that Holdfast mounts. */
const RESERVED_PATHS = [
  '/holdfast',
  '/etc/holdfast',
  REGISTRATION_PATH,
  CA_PATH,
  ...Object.values(STEP_PATHS),
];

/** Whether a mount path is one of Holdfast's directories or inside one. */
export function isReservedPath(path: string): boolean {
  const clean = path.replace(/\/+$/, '');
  return RESERVED_PATHS.some((own) => clean === own || clean.startsWith(`${own}/`));
}

/** Whether Holdfast itself sets the label or annotation. */
export function isReservedMetadata(key: string): boolean {
  return key === MANAGED_BY_LABEL || key.startsWith(RESERVED_METADATA_PREFIX);
}

/**
 * Labels by which actions-runner-controller (ARC) recognizes its own pods in every namespace that
 * it watches. It adds its finalizer to a pod with one of the first three, which keeps the pod from
 * being deleted. It deletes pods with the fourth when the runner of that name is deleted. It adds a
 * registration token to pods with the last. From its
 * controllers/actions.summerwind.net/constants.go and runner_pod_controller.go.
 */
const ARC_LABELS = new Set([
  'actions-runner',
  'runnerset-name',
  'runner-deployment-name',
  'runner-pod',
  'actions-runner-controller/inject-registration-token',
]);

/** Whether the label would make ARC treat a pod as its own. */
export function isArcLabel(key: string): boolean {
  return ARC_LABELS.has(key);
}
