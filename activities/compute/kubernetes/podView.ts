/** Converts a pod of the API server to the facts on which decisions depend. Pure. */
import type { V1ContainerStatus, V1Pod, V1PodCondition } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { parseDuration } from '../../../core/domain/duration.ts';
import { MAX_CLOCK_SKEW_MS } from '../../../core/domain/podConditions.ts';
import {
  REGISTER_CONTAINER,
  RUNNER_CONTAINER,
  SHARED_DIR_CONTAINER,
  UPLOADER_CONTAINER,
} from '../../../core/domain/podTemplate.ts';
import {
  COMMAND_PROBES,
  ONE_JOB_PROBES,
  PROBES_ANNOTATION,
  RUNNER_PROBES,
  NOTIFY_ANNOTATION,
  NOTIFY_BUSY,
  UPLOAD_TIMEOUT_ANNOTATION,
  WORKFLOW_ID_ANNOTATION,
} from './metadata.ts';
import { parseSupervisorRecord } from './supervisorRecord.ts';
import type { PodView } from '../../../core/domain/pod.ts';

type Problem = NonNullable<PodView['problem']>;
type Exit = NonNullable<PodView['exit']>;

/**
 * Reasons of the kubelet for a container that cannot start:
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/pkg/kubelet/images/types.go and
 * …/pkg/kubelet/kuberuntime/kuberuntime_container.go.
 */
const PROBLEMS: Readonly<Record<string, Problem['kind']>> = {
  ErrImagePull: 'image_pull',
  ImagePullBackOff: 'image_pull',
  ErrImageNeverPull: 'image_pull',
  ImageInspectError: 'image_pull',
  RegistryUnavailable: 'image_pull',
  SignatureValidationFailed: 'image_pull',
  InvalidImageName: 'invalid_image',
  CreateContainerConfigError: 'config',
  CreateContainerError: 'config',
  PreCreateHookError: 'config',
  PreStartHookError: 'config',
  PostStartHookError: 'config',
  RunContainerError: 'config',
};

/**
 * Time after its start in which a container is not ready because its first readiness probe has not
 * succeeded yet (ms). Only after it does "not ready" mean that a job is running.
 */
const FIRST_READINESS_MS = 1_500;

/** Time after the uploader's own timeout until the pod no longer waits for it (ms). */
const UPLOAD_MARGIN_MS = 30_000;

/** Exit code of a supervisor that could not start its command. */
const NOT_STARTED = 127;

/**
 * Reason of a container that the kubelet has lost track of. Its exit code 137 is not a real one.
 */
const UNKNOWN_END = 'ContainerStatusUnknown';

/**
 * Converts a pod to a view.
 * @param pod - as parsed from JSON (times are strings) or from client-node (times are Dates)
 * @param now - current time (ISO 8601), used only for the time at which something was first seen,
 * which the status of a pod does not contain
 * @param previous - earlier view of the same UID, from which unchanged facts keep their time
 */
export function toPodView(pod: V1Pod, now: string, previous?: PodView): PodView {
  const { metadata, status } = pod;
  const runner = named(status?.containerStatuses, RUNNER_CONTAINER);
  const register = named(status?.initContainerStatuses, REGISTER_CONTAINER);
  const uploader = named(status?.containerStatuses, UPLOADER_CONTAINER);
  const disruption = condition(pod, 'DisruptionTarget');
  const known = previous?.uid === metadata?.uid ? previous : undefined;
  const terminationDeadline = localDeadline(
    timestamp(metadata?.deletionTimestamp),
    (metadata?.deletionGracePeriodSeconds ?? 0) * 1_000,
    now,
    known?.terminationDeadline,
  );
  const uploadingUntil = uploadEnd(pod, runner, uploader, now, known);
  return omitUndefined({
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    namespace: metadata?.namespace || undefined,
    workflowId: metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] ?? '',
    ...schedulingOf(pod),
    createdAt: timestamp(metadata?.creationTimestamp) ?? now,
    // If the registration has its own init container, the runner starts with it: from then on it
    // may be registered.
    startedAt: startOf(register) ?? (lostProbePort(pod, runner) ? undefined : startOf(runner)),
    ended:
      (runner?.state?.terminated !== undefined && uploadingUntil === undefined) ||
      status?.phase === 'Succeeded' ||
      status?.phase === 'Failed',
    uploadingUntil,
    deleted: false,
    exit: lostProbePort(pod, runner)
      ? undefined
      : (exitOf(runner, uploader) ?? exitOf(failed(register))),
    terminating: terminationDeadline !== undefined,
    // The API server sets deletionTimestamp to the end of the grace period, not to the time of the
    // request.
    terminationDeadline,
    terminationRequestedAt: terminationRequestedAt(metadata, disruption),
    problem: problemOf(pod, now, known),
    disruptionReason:
      disruption?.status === 'True' ? (disruption.reason ?? 'DisruptionTarget') : undefined,
    reason: status?.reason || undefined,
    ...probesOf(pod, runner, uploadingUntil !== undefined, now, known),
    readinessChangedAt: timestamp(condition(pod, 'Ready')?.lastTransitionTime),
    reusable:
      metadata?.annotations?.[PROBES_ANNOTATION] === RUNNER_PROBES ? (true as const) : undefined,
    notifyBusy:
      metadata?.annotations?.[NOTIFY_ANNOTATION] === NOTIFY_BUSY ? (true as const) : undefined,
  });
}

function named(
  containers: readonly V1ContainerStatus[] | undefined,
  name: string,
): V1ContainerStatus | undefined {
  return containers?.find((container) => container.name === name);
}

/** Returns whether the pod has a node, and why the scheduler finds none for it. */
function schedulingOf(pod: V1Pod): Pick<PodView, 'scheduled' | 'node' | 'unschedulable'> {
  const found = condition(pod, 'PodScheduled');
  const node = pod.spec?.nodeName || undefined;
  const scheduled = found?.status === 'True' || node !== undefined;
  const unschedulable =
    !scheduled && found?.status === 'False'
      ? (found.message ?? found.reason ?? 'not scheduled')
      : undefined;
  return { scheduled, ...omitUndefined({ node, unschedulable }) };
}

function condition(pod: V1Pod, type: string): V1PodCondition | undefined {
  return pod.status?.conditions?.find((each) => each.type === type);
}

/**
 * Returns the time of the first termination request. An eviction sets the condition before it
 * deletes the pod; the kubelet sets it without a deletion.
 */
function terminationRequestedAt(
  metadata: V1Pod['metadata'],
  disruption: V1PodCondition | undefined,
): string | undefined {
  const disruptedAt =
    disruption?.status === 'True'
      ? Date.parse(timestamp(disruption.lastTransitionTime) ?? '')
      : Number.NaN;
  const deletedAt =
    Date.parse(timestamp(metadata?.deletionTimestamp) ?? '') -
    (metadata?.deletionGracePeriodSeconds ?? 0) * 1_000;
  const times = [disruptedAt, deletedAt].filter((at) => !Number.isNaN(at));
  return times.length === 0 ? undefined : new Date(Math.min(...times)).toISOString();
}

function startOf(container: V1ContainerStatus | undefined): string | undefined {
  return timestamp(container?.state?.running?.startedAt ?? container?.state?.terminated?.startedAt);
}

/**
 * Converts a deadline of the cluster's clock to one of this process's clock, which may be ahead: not
 * before the duration has passed since the deadline was first seen. A process that sees it late does
 * not extend it by more than clocks may differ.
 * @param deadline - by the clock of the API server or of the node (ISO 8601)
 * @param durationMs - time from its beginning to the deadline (ms)
 * @param previous - earlier result. Deadlines only become earlier
 */
function localDeadline(
  deadline: string | undefined,
  durationMs: number,
  now: string,
  previous: string | undefined,
): string | undefined {
  if (deadline === undefined) return undefined;
  const deadlineMs = Date.parse(deadline);
  const localMs = Math.min(
    Math.max(deadlineMs, Date.parse(now) + durationMs),
    deadlineMs + MAX_CLOCK_SKEW_MS,
    Date.parse(previous ?? '') || Number.POSITIVE_INFINITY,
  );
  return timestamp(new Date(localMs));
}

/** Returns the container if it has failed. */
function failed(container: V1ContainerStatus | undefined): V1ContainerStatus | undefined {
  return (container?.state?.terminated?.exitCode ?? 0) === 0 ? undefined : container;
}

function exitOf(
  runner: V1ContainerStatus | undefined,
  uploader?: V1ContainerStatus,
): Exit | undefined {
  const terminated = runner?.state?.terminated;
  if (!terminated || terminated.reason === UNKNOWN_END) return undefined;
  const recorded = parseSupervisorRecord(terminated.message);
  const code = recorded?.exitCode ?? terminated.exitCode;
  const message =
    (recorded === undefined ? terminated.message : recorded.error) ??
    (printableReason(terminated.reason) ? undefined : terminated.reason);
  return omitUndefined({
    code,
    // The runtime also reports this reason for a container whose first process continued after
    // another process (that of the job) was killed.
    oomKilled: terminated.reason === 'OOMKilled' && code !== 0,
    finishedAt: timestamp(terminated.finishedAt),
    message: message || undefined,
    uploadFailure: uploadFailure(uploader),
    record: recorded?.record,
  });
}

/**
 * Returns until when the pod waits for its uploader. The uploader ends by itself; one that does not
 * must not keep its pod running forever.
 */
function uploadEnd(
  { metadata }: V1Pod,
  runner: V1ContainerStatus | undefined,
  uploader: V1ContainerStatus | undefined,
  now: string,
  previous: PodView | undefined,
): string | undefined {
  const endedAt = timestamp(runner?.state?.terminated?.finishedAt);
  const timeoutMs = parseDuration(metadata?.annotations?.[UPLOAD_TIMEOUT_ANNOTATION] ?? '');
  if (endedAt === undefined || timeoutMs === undefined || uploader?.state?.running === undefined)
    return undefined;
  const durationMs = timeoutMs + UPLOAD_MARGIN_MS;
  return localDeadline(
    new Date(Date.parse(endedAt) + durationMs).toISOString(),
    durationMs,
    now,
    previous?.uploadingUntil,
  );
}

/**
 * Returns the failure in the termination message of the uploader, one line of JSON
 * (uploader/main.ts), if there is one.
 */
function uploadFailure(uploader: V1ContainerStatus | undefined): Exit['uploadFailure'] {
  const terminated = uploader?.state?.terminated;
  if (terminated === undefined || terminated.exitCode === 0) return undefined;
  const { sharedDirFault, error } = supervisorRecordOf(terminated.message);
  if (typeof sharedDirFault === 'string') return { by: 'step', why: sharedDirFault };
  return {
    by: 'store',
    why:
      typeof error === 'string'
        ? error
        : `the uploader ended with exit code ${terminated.exitCode}`,
  };
}

function supervisorRecordOf(message = ''): { sharedDirFault?: unknown; error?: unknown } {
  try {
    return (JSON.parse(message) as object | null) ?? {};
  } catch {
    // The message is truncated or missing. The exit code remains.
    return {};
  }
}

/**
 * Returns whether another process on the node's network uses the port of the supervisor's probes.
 * The runner has not started, so its exit is not its own. Another pod has another name and so
 * another port.
 */
function lostProbePort({ spec }: V1Pod, runner: V1ContainerStatus | undefined): boolean {
  const recorded = parseSupervisorRecord(runner?.state?.terminated?.message);
  return (
    spec?.hostNetwork === true &&
    recorded?.exitCode === NOT_STARTED &&
    recorded.error?.startsWith('listen EADDRINUSE') === true
  );
}

/** Returns whether the reason says no more than the exit code. */
function printableReason(reason: string | undefined): boolean {
  return (
    reason === undefined || reason === 'Completed' || reason === 'Error' || reason === 'OOMKilled'
  );
}

/**
 * Derives the states online and busy from the probes, which are valid only while the container
 * runs. On a lost node, `ready` of the container stays unchanged; only the pod's Ready condition
 * changes.
 */
function probesOf(
  pod: V1Pod,
  runner: V1ContainerStatus | undefined,
  uploading: boolean,
  now: string,
  previous: PodView | undefined,
): Pick<PodView, 'online' | 'busy' | 'assumedBusyFrom'> {
  const probes = pod.metadata?.annotations?.[PROBES_ANNOTATION];
  if (probes !== RUNNER_PROBES && probes !== ONE_JOB_PROBES && probes !== COMMAND_PROBES) return {};
  const started = runner?.state?.running !== undefined && runner.started === true;
  // The kubelet reports every startup probe of a terminating pod as successful:
  // https://github.com/kubernetes/kubernetes/blob/v1.34.3/pkg/kubelet/prober/worker.go (doProbe)
  const trusted =
    pod.metadata?.deletionTimestamp === undefined ||
    previous?.online === true ||
    runner?.ready === true;
  if (started && !trusted) return previous?.online === false ? { online: false, busy: false } : {};
  // A command whose pod still uploads its artifacts has been online.
  if (probes === COMMAND_PROBES) return { online: started || uploading };
  const online = started;
  if (!online) return { online, busy: false };
  if (runner?.ready === true) return { online, busy: false };
  if (previous?.online === true && previous.busy !== undefined) return { online, busy: true };
  const assumedBusyFrom =
    previous?.assumedBusyFrom ?? new Date(Date.parse(now) + FIRST_READINESS_MS).toISOString();
  // A pod that is deleted before its first readiness probe may end before the probe.
  return pod.metadata?.deletionTimestamp !== undefined &&
    Date.parse(assumedBusyFrom) > Date.parse(now)
    ? { online }
    : { online, assumedBusyFrom };
}

function problemOf(pod: V1Pod, now: string, previous: PodView | undefined): Problem | undefined {
  const found = stuckContainer(pod) ?? failedInit(pod);
  if (!found) return undefined;
  return { ...found, since: previous?.problem?.kind === found.kind ? previous.problem.since : now };
}

function stuckContainer({ status }: V1Pod): Omit<Problem, 'since'> | undefined {
  for (const container of [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ]) {
    const waiting = container.state?.waiting;
    const kind = PROBLEMS[waiting?.reason ?? ''];
    if (kind)
      return {
        kind,
        message: `container ${container.name}: ${waiting?.reason}: ${waiting?.message ?? 'no message'}`,
      };
  }
  return undefined;
}

/**
 * Returns the failure of an init container. With restartPolicy Never, it makes the pod fail, and
 * the runner never starts. A failed registration counts as the exit of the runner instead.
 */
function failedInit({ status }: V1Pod): Omit<Problem, 'since'> | undefined {
  if (status?.phase !== 'Failed') return undefined;
  if (
    status.containerStatuses?.some(
      ({ name, state }) => name === RUNNER_CONTAINER && state?.terminated,
    )
  )
    return undefined;
  const init = status.initContainerStatuses?.find((container) => failed(container) !== undefined);
  const terminated = init?.state?.terminated;
  if (!terminated || (init?.name === REGISTER_CONTAINER && startOf(init) !== undefined))
    return undefined;
  return {
    kind: init?.name === SHARED_DIR_CONTAINER ? 'store' : 'config',
    message: `init container ${init?.name} ended with exit code ${terminated.exitCode}: ${terminated.message ?? terminated.reason ?? 'no message'}`,
  };
}

/**
 * Converts a time to ISO 8601 without a zero fraction of a second. Returns `undefined` for "never",
 * for which the kubelet also writes 1970.
 */
function timestamp(value: Date | string | null | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  const time = new Date(value);
  if (Number.isNaN(time.getTime()) || time.getTime() <= 0) return undefined;
  return time.toISOString().replace('.000Z', 'Z');
}
