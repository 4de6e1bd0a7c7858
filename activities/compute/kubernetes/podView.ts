/** From a pod as the API server shows it to the facts that decisions need. Pure. */
import type { V1ContainerStatus, V1Pod, V1PodCondition } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { parseDuration } from '../../../core/domain/duration.ts';
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
 * The kubelet's reasons for a container that waits in vain:
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/pkg/kubelet/images/types.go and …/pkg/kubelet/kuberuntime/kuberuntime_container.go.
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
 * A container that has just started up is not ready until its first readiness probe has answered, in ms; only then does "not ready" mean
 * that a job is running.
 */
const FIRST_READINESS_MS = 1_500;

/** Between an uploader's timeout and the end of patience with it, in ms. */
const UPLOAD_MARGIN_MS = 30_000;

/** Exit code of a supervisor that could not start its command. */
const NOT_STARTED = 127;

/** The kubelet lost track of the container: its 137 is made up. */
const UNKNOWN_END = 'ContainerStatusUnknown';

/**
 * @param pod as parsed from JSON (times are strings) or as client-node gives it (times are Dates)
 * @param now ISO 8601; only used for when something was first seen, which a pod's status does not tell
 * @param previous an earlier view of the same UID, from which what has not changed keeps its time
 */
export function toPodView(pod: V1Pod, now: string, previous?: PodView): PodView {
  const { metadata, spec, status } = pod;
  const runner = status?.containerStatuses?.find(
    (container) => container.name === RUNNER_CONTAINER,
  );
  const register = status?.initContainerStatuses?.find(
    (container) => container.name === REGISTER_CONTAINER,
  );
  const uploader = status?.containerStatuses?.find(
    (container) => container.name === UPLOADER_CONTAINER,
  );
  const uploadingUntil = uploadEnd(pod, runner, uploader);
  const scheduledCondition = condition(pod, 'PodScheduled');
  const terminationDeadline = timestamp(metadata?.deletionTimestamp);
  const disruption = condition(pod, 'DisruptionTarget');
  const known = previous?.uid === metadata?.uid ? previous : undefined;
  const scheduled = scheduledCondition?.status === 'True' || Boolean(spec?.nodeName);
  return omitUndefined({
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    namespace: metadata?.namespace || undefined,
    workflowId: metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] ?? '',
    scheduled,
    node: spec?.nodeName || undefined,
    createdAt: timestamp(metadata?.creationTimestamp) ?? now,
    // Where the registration has a container of its own the runner begins with that: from then on it may be registered.
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
    // The API server sets deletionTimestamp to the moment when the grace is over, not to that of the request.
    terminationDeadline,
    terminationRequestedAt: terminationRequestedAt(metadata, disruption),
    problem: problemOf(pod, now, known),
    disruptionReason:
      disruption?.status === 'True' ? (disruption.reason ?? 'DisruptionTarget') : undefined,
    reason: status?.reason || undefined,
    unschedulable:
      !scheduled && scheduledCondition?.status === 'False'
        ? (scheduledCondition.message ?? scheduledCondition.reason ?? 'not scheduled')
        : undefined,
    ...probesOf(pod, runner, uploadingUntil !== undefined, now, known),
    readinessChangedAt: timestamp(condition(pod, 'Ready')?.lastTransitionTime),
    reusable:
      metadata?.annotations?.[PROBES_ANNOTATION] === RUNNER_PROBES ? (true as const) : undefined,
    notifyBusy:
      metadata?.annotations?.[NOTIFY_ANNOTATION] === NOTIFY_BUSY ? (true as const) : undefined,
  });
}

function condition(pod: V1Pod, type: string): V1PodCondition | undefined {
  return pod.status?.conditions?.find((each) => each.type === type);
}

/** Whichever came first: an eviction sets the condition before it deletes, the kubelet sets it without deleting at all. */
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

/** Only if it has. */
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
    // The runtime gives this reason also to a container whose first process lives on when another one (the job's) was killed.
    oomKilled: terminated.reason === 'OOMKilled' && code !== 0,
    finishedAt: timestamp(terminated.finishedAt),
    message: message || undefined,
    uploadFailure: uploadFailure(uploader),
    record: recorded?.record,
  });
}

/** It ends by itself; one that does not must not hold its pod for ever. */
function uploadEnd(
  { metadata }: V1Pod,
  runner: V1ContainerStatus | undefined,
  uploader: V1ContainerStatus | undefined,
): string | undefined {
  const endedAt = timestamp(runner?.state?.terminated?.finishedAt);
  const timeoutMs = parseDuration(metadata?.annotations?.[UPLOAD_TIMEOUT_ANNOTATION] ?? '');
  if (endedAt === undefined || timeoutMs === undefined || uploader?.state?.running === undefined)
    return undefined;
  return new Date(Date.parse(endedAt) + timeoutMs + UPLOAD_MARGIN_MS).toISOString();
}

/** The uploader's last word, one line of JSON (uploader/main.ts), as far as there was one. */
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
    // Cut, or not there: what its exit code says remains.
    return {};
  }
}

/**
 * On its node's network somebody else has the port of the supervisor's probes: the runner never started, and nothing it did ended it. Another
 * pod has another name, hence another port.
 */
function lostProbePort({ spec }: V1Pod, runner: V1ContainerStatus | undefined): boolean {
  const recorded = parseSupervisorRecord(runner?.state?.terminated?.message);
  return (
    spec?.hostNetwork === true &&
    recorded?.exitCode === NOT_STARTED &&
    recorded.error?.startsWith('listen EADDRINUSE') === true
  );
}

/** Reasons that say no more than the exit code does. */
function printableReason(reason: string | undefined): boolean {
  return (
    reason === undefined || reason === 'Completed' || reason === 'Error' || reason === 'OOMKilled'
  );
}

/** Told by the probes only while the container runs; `ready` of a lost node's pod is not touched, its Ready condition is. */
function probesOf(
  pod: V1Pod,
  runner: V1ContainerStatus | undefined,
  uploading: boolean,
  now: string,
  previous: PodView | undefined,
): Pick<PodView, 'online' | 'busy' | 'assumedBusyFrom'> {
  const told = pod.metadata?.annotations?.[PROBES_ANNOTATION];
  if (told !== RUNNER_PROBES && told !== ONE_JOB_PROBES && told !== COMMAND_PROBES) return {};
  const started = runner?.state?.running !== undefined && runner.started === true;
  // The kubelet calls every startup probe of a terminating pod a success, whatever it answers:
  // https://github.com/kubernetes/kubernetes/blob/v1.34.3/pkg/kubelet/prober/worker.go (doProbe)
  const trusted =
    pod.metadata?.deletionTimestamp === undefined ||
    previous?.online === true ||
    runner?.ready === true;
  if (started && !trusted) return previous?.online === false ? { online: false, busy: false } : {};
  // One whose pod is still storing was up.
  if (told === COMMAND_PROBES) return { online: started || uploading };
  const online = started;
  if (!online) return { online, busy: false };
  if (runner?.ready === true) return { online, busy: false };
  if (previous?.online === true && previous.busy !== undefined) return { online, busy: true };
  const assumedBusyFrom =
    previous?.assumedBusyFrom ?? new Date(Date.parse(now) + FIRST_READINESS_MS).toISOString();
  // One that is told to go before it was ever asked may end before it is.
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

/** With restartPolicy Never an init container that fails fails the pod, and the runner never starts. A registration that does is the runner's own end. */
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

/** ISO 8601 without fractions of a second that are zero; undefined for "never", which the kubelet also writes as 1970. */
function timestamp(value: Date | string | null | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  const time = new Date(value);
  if (Number.isNaN(time.getTime()) || time.getTime() <= 0) return undefined;
  return time.toISOString().replace('.000Z', 'Z');
}
