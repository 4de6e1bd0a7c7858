/** Labels and annotations that tie a Kubernetes object to its runner. Pure. */
import { MANAGED_BY_LABEL, RESERVED_METADATA_PREFIX } from '../../../core/domain/podTemplate.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';

/** Label with the name of the installation that owns the object. */
export const INSTALLATION_LABEL = `${RESERVED_METADATA_PREFIX}installation`;
/** Annotation with the ID of the runner workflow. */
export const WORKFLOW_ID_ANNOTATION = `${RESERVED_METADATA_PREFIX}workflow-id`;
/** Annotation with the first run ID of the runner workflow. */
export const FIRST_RUN_ID_ANNOTATION = `${RESERVED_METADATA_PREFIX}first-run-id`;
/** Annotation with the attempt of the runner workflow, from 1. */
export const ATTEMPT_ANNOTATION = `${RESERVED_METADATA_PREFIX}attempt`;
/** Annotation with the ID of the workflow's Temporal namespace. */
export const TEMPORAL_NAMESPACE_ANNOTATION = `${RESERVED_METADATA_PREFIX}temporal-namespace-id`;
/** Annotation with the name of the runner at the CI server. */
export const RUNNER_NAME_ANNOTATION = `${RESERVED_METADATA_PREFIX}runner-name`;
/** Annotation with the ID of the registration at the CI server, if it is known. */
export const RUNNER_ID_ANNOTATION = `${RESERVED_METADATA_PREFIX}runner-id`;
/** Annotation with the scope of the registration: `organization/acme` or `repository/acme/app`. */
export const SCOPE_ANNOTATION = `${RESERVED_METADATA_PREFIX}scope`;
/** Annotation with the name of the credential of the registration. */
export const CREDENTIAL_ANNOTATION = `${RESERVED_METADATA_PREFIX}credential`;
/** Annotation on a pod with the state change that its set waits for. */
export const NOTIFY_ANNOTATION = `${RESERVED_METADATA_PREFIX}notify`;
/** Value of {@link NOTIFY_ANNOTATION}: the runner has become busy. */
export const NOTIFY_BUSY = 'busy';
/** Annotation on a pod with the maximum duration of a job of its runner. */
export const JOB_TIMEOUT_CAP_ANNOTATION = `${RESERVED_METADATA_PREFIX}job-timeout-cap`;
/** Annotation with which a person excludes an object from the sweep. */
export const HOLD_ANNOTATION = `${RESERVED_METADATA_PREFIX}hold`;
/** Annotation with the finding of the sweep and its time. */
export const SWEEP_MARK_ANNOTATION = `${RESERVED_METADATA_PREFIX}sweep-mark`;
/** Annotation with the meaning of the probes of the runner container. */
export const PROBES_ANNOTATION = `${RESERVED_METADATA_PREFIX}probes`;
/** Probes of a runner. Startup means registered and listening, readiness means idle. */
export const RUNNER_PROBES = 'runner';
/** Probes of a runner that takes a single job, with the same meaning. */
export const ONE_JOB_PROBES = 'one-job-runner';
/** Probes of a command. Startup means that it runs; readiness has no meaning. */
export const COMMAND_PROBES = 'command';

/** Annotation on a pod with the maximum time that its uploader may take. */
export const UPLOAD_TIMEOUT_ANNOTATION = `${RESERVED_METADATA_PREFIX}upload-timeout`;

/**
 * Annotation with the reason of the stop. The supervisor reads it through a downward API volume.
 */
export const STOP_REASON_ANNOTATION = `${RESERVED_METADATA_PREFIX}stop-reason`;
/**
 * Annotation with the time of the latest stop request. It changes if the same reason is given
 * again.
 */
export const STOP_REQUESTED_AT_ANNOTATION = `${RESERVED_METADATA_PREFIX}stop-requested-at`;
/**
 * Label that the runner's container hooks put on objects of a job, with the name of the runner's
 * pod.
 */
export const RUNNER_POD_LABEL = 'runner-pod';
/**
 * Label with the runner's workflow ID, shortened to a valid label value. `kubectl get
 * pods,secrets,pvc -l holdfast.dev/workflow=...` finds the objects of a terminated workflow.
 */
export const WORKFLOW_LABEL = `${RESERVED_METADATA_PREFIX}workflow`;

const MAX_LABEL_VALUE = 63;

/** Returns the labels of an object of this installation. `more` cannot override them. */
export function installationLabels(
  installation: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(more)) labels[key] = toLabelValue(value);
  return { ...labels, [MANAGED_BY_LABEL]: 'holdfast', [INSTALLATION_LABEL]: installation };
}

/** Returns whether a person has excluded the object from all automatic changes. */
export function isOnHold(annotations: Readonly<Record<string, string>>): boolean {
  return (annotations[HOLD_ANNOTATION] ?? 'false') !== 'false';
}

/** Returns the {@link WORKFLOW_LABEL} of an object of this runner workflow. */
export function workflowLabel({ workflowId }: RunnerIdentity): Record<string, string> {
  return { [WORKFLOW_LABEL]: toLabelValue(workflowId) };
}

/** Returns the label selector of all objects of an installation. */
export function installationSelector(installation: string): string {
  return `${MANAGED_BY_LABEL}=holdfast,${INSTALLATION_LABEL}=${installation}`;
}

/**
 * Returns the nearest valid label value. Repository names contain a slash, and workflow IDs may
 * contain any character.
 */
export function toLabelValue(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, MAX_LABEL_VALUE)
    .replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}

/** Returns whether the API server accepts the text as a label value. */
export function isLabelValue(text: string): boolean {
  return text !== '' && toLabelValue(text) === text;
}

/** Returns the annotations that tie an object to one runner workflow and attempt. */
export function identityAnnotations(identity: RunnerIdentity): Record<string, string> {
  return {
    [WORKFLOW_ID_ANNOTATION]: identity.workflowId,
    [FIRST_RUN_ID_ANNOTATION]: identity.firstRunId,
    [ATTEMPT_ANNOTATION]: String(identity.attempt),
    ...(identity.temporalNamespaceId !== undefined && {
      [TEMPORAL_NAMESPACE_ANNOTATION]: identity.temporalNamespaceId,
    }),
  };
}

/** Returns whether the object was created for exactly this workflow and attempt. */
export function belongsTo(
  annotations: Readonly<Record<string, string>> | undefined,
  identity: RunnerIdentity,
): boolean {
  return Object.entries(identityAnnotations(identity)).every(
    ([key, value]) => annotations?.[key] === value,
  );
}
