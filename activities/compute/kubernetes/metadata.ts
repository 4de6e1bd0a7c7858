/** Labels and annotations that tie a Kubernetes object to its runner. Pure. */
import { MANAGED_BY_LABEL, RESERVED_METADATA_PREFIX } from '../../../core/domain/podTemplate.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';

export const INSTALLATION_LABEL = `${RESERVED_METADATA_PREFIX}installation`;
export const WORKFLOW_ID_ANNOTATION = `${RESERVED_METADATA_PREFIX}workflow-id`;
export const FIRST_RUN_ID_ANNOTATION = `${RESERVED_METADATA_PREFIX}first-run-id`;
export const ATTEMPT_ANNOTATION = `${RESERVED_METADATA_PREFIX}attempt`;
/** ID of the workflow's Temporal namespace. */
export const TEMPORAL_NAMESPACE_ANNOTATION = `${RESERVED_METADATA_PREFIX}temporal-namespace-id`;
export const RUNNER_NAME_ANNOTATION = `${RESERVED_METADATA_PREFIX}runner-name`;
export const RUNNER_ID_ANNOTATION = `${RESERVED_METADATA_PREFIX}runner-id`;
/** Where the registration is: `organization/acme`, `repository/acme/app`. */
export const SCOPE_ANNOTATION = `${RESERVED_METADATA_PREFIX}scope`;
export const CREDENTIAL_ANNOTATION = `${RESERVED_METADATA_PREFIX}credential`;
/** On a pod: what its set waits for. */
export const NOTIFY_ANNOTATION = `${RESERVED_METADATA_PREFIX}notify`;
/** That its runner is busy. */
export const NOTIFY_BUSY = 'busy';
/** On a pod: how long a job of its runner may take at most. */
export const JOB_TIMEOUT_CAP_ANNOTATION = `${RESERVED_METADATA_PREFIX}job-timeout-cap`;
/** A person's word that the sweep shall not touch this. */
export const HOLD_ANNOTATION = `${RESERVED_METADATA_PREFIX}hold`;
/** What the sweep has found about it, and when. */
export const SWEEP_MARK_ANNOTATION = `${RESERVED_METADATA_PREFIX}sweep-mark`;
/** What the probes of the runner container mean. */
export const PROBES_ANNOTATION = `${RESERVED_METADATA_PREFIX}probes`;
/** Startup: registered and listening; readiness: idle. */
export const RUNNER_PROBES = 'runner';
/** The same of a runner that takes one job only. */
export const ONE_JOB_PROBES = 'one-job-runner';
/** Startup: the command runs; readiness: nothing. */
export const COMMAND_PROBES = 'command';

/** Of a pod with an uploader: how long that stores at most what the runner container has left. */
export const UPLOAD_TIMEOUT_ANNOTATION = `${RESERVED_METADATA_PREFIX}upload-timeout`;

/** Why the pod is being stopped; the supervisor reads it through a downward API volume. */
export const STOP_REASON_ANNOTATION = `${RESERVED_METADATA_PREFIX}stop-reason`;
/** When that was stated last: a change, where the reason is stated again. */
export const STOP_REQUESTED_AT_ANNOTATION = `${RESERVED_METADATA_PREFIX}stop-requested-at`;
/** Of what a runner's container hooks make for a job: the name of its runner's pod. */
export const RUNNER_POD_LABEL = 'runner-pod';
/** The runner's workflow, as far as a label can carry its id: `kubectl get pods,secrets,pvc -l holdfast.dev/workflow=…` finds what a terminated one left. */
export const WORKFLOW_LABEL = `${RESERVED_METADATA_PREFIX}workflow`;

const MAX_LABEL_VALUE = 63;

/** Labels of everything that one installation owns. `more` never overrides them. */
export function installationLabels(
  installation: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(more)) labels[key] = toLabelValue(value);
  return { ...labels, [MANAGED_BY_LABEL]: 'holdfast', [INSTALLATION_LABEL]: installation };
}

/** Nobody but people is to touch the object of these annotations. */
export function isOnHold(annotations: Readonly<Record<string, string>>): boolean {
  return (annotations[HOLD_ANNOTATION] ?? 'false') !== 'false';
}

/** {@link WORKFLOW_LABEL} of what belongs to one life. */
export function workflowLabel({ workflowId }: RunnerIdentity): Record<string, string> {
  return { [WORKFLOW_LABEL]: toLabelValue(workflowId) };
}

/** Selects what {@link installationLabels} marked. */
export function installationSelector(installation: string): string {
  return `${MANAGED_BY_LABEL}=holdfast,${INSTALLATION_LABEL}=${installation}`;
}

/** The nearest valid label value: a repository's name has a slash, a workflow id may have anything. */
export function toLabelValue(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, MAX_LABEL_VALUE)
    .replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}

/** True for a value that the API server accepts as it is. */
export function isLabelValue(text: string): boolean {
  return text !== '' && toLabelValue(text) === text;
}

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

/** True when the object of these annotations was made for exactly this runner. */
export function belongsTo(
  annotations: Readonly<Record<string, string>> | undefined,
  identity: RunnerIdentity,
): boolean {
  return Object.entries(identityAnnotations(identity)).every(
    ([key, value]) => annotations?.[key] === value,
  );
}
