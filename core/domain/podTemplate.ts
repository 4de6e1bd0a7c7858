/** What of a pod is Holdfast's own: names, labels, variables and folders that a user's template may not take. */

import { isRegistrationVariable } from './runnerKinds/runnerKinds.ts';

/** The container that runs the CI runner. A template's container of this name is merged under what Holdfast sets. */
export const RUNNER_CONTAINER = 'runner';
/** The init container that copies the supervisor in. */
export const SUPERVISOR_CONTAINER = 'holdfast-supervisor';
/** The init container in which a runner with a registration token registers. A template's one of this name is merged under what Holdfast sets. */
export const REGISTER_CONTAINER = 'holdfast-register';
/** Beside a job's step: stores what that leaves. */
export const UPLOADER_CONTAINER = 'holdfast-uploader';
/** The init container that gets what the steps before have left. */
export const SHARED_DIR_CONTAINER = 'holdfast-shared';
/** Labels and annotations under this prefix belong to Holdfast. */
export const RESERVED_METADATA_PREFIX = 'holdfast.dev/';
/** Name of the set that a runner belongs to. */
export const SET_LABEL = `${RESERVED_METADATA_PREFIX}set`;
/** Recommended label of Kubernetes for the tool that manages an object. */
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
/** Volumes under this prefix belong to Holdfast. */
export const RESERVED_VOLUME_PREFIX = 'holdfast-';
/** Volumes of the runner's own claims, which its other containers may mount too. */
export const CLAIM_VOLUME_PREFIX = `${RESERVED_VOLUME_PREFIX}claim-`;
/** The claim of the artifact store, or the key of its bucket. */
export const STORE_VOLUME = `${RESERVED_VOLUME_PREFIX}store`;

const RESERVED_ENV_PREFIX = 'HOLDFAST_';

/** True for a variable of the runner container that Holdfast sets itself. */
export function isReservedEnv(name: string): boolean {
  return name.startsWith(RESERVED_ENV_PREFIX) || isRegistrationVariable(name);
}

/** Where a runner finds the files of its registration. */
export const REGISTRATION_PATH = '/holdfast-registration';
/** Of a job's step: what it leaves for those after it (SHARED_DIR), what it makes (ARTIFACT_DIR), and what its supervisor notes. */
export const STEP_PATHS = {
  shared: '/holdfast-shared',
  artifacts: '/holdfast-artifacts',
  records: '/holdfast-records',
} as const;
/** Where the runner container has the certificates that it trusts. */
export const CA_PATH = '/holdfast-ca';
/** Folders of the runner container that Holdfast mounts. */
const RESERVED_PATHS = [
  '/holdfast',
  '/etc/holdfast',
  REGISTRATION_PATH,
  CA_PATH,
  ...Object.values(STEP_PATHS),
];

/** True for a mount path in Holdfast's own folders, or over them. */
export function isReservedPath(path: string): boolean {
  const clean = path.replace(/\/+$/, '');
  return RESERVED_PATHS.some((own) => clean === own || clean.startsWith(`${own}/`));
}

/** True for a label or annotation that Holdfast sets itself. */
export function isReservedMetadata(key: string): boolean {
  return key === MANAGED_BY_LABEL || key.startsWith(RESERVED_METADATA_PREFIX);
}

/**
 * Labels by which actions-runner-controller (ARC) knows its own pods, in whatever namespace it looks after: it puts its finalizer on a pod that has one of the first three, and
 * keeps it from going; it deletes what has the fourth when the runner of that name goes; and it gives a registration token to what has the last.
 * From its controllers/actions.summerwind.net/constants.go and runner_pod_controller.go.
 */
const ARC_LABELS = new Set([
  'actions-runner',
  'runnerset-name',
  'runner-deployment-name',
  'runner-pod',
  'actions-runner-controller/inject-registration-token',
]);

/** True for a label that would make ARC take a pod for its own. */
export function isArcLabel(key: string): boolean {
  return ARC_LABELS.has(key);
}
