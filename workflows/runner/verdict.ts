/**
 * Decides what follows after a runner has ended: the verdict on its workflow, or a replacement.
 * Pure.
 */
import {
  RUNNER_KINDS,
  takesJobs,
  type RunnerKindName,
} from '../../core/domain/runnerKinds/runnerKinds.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { OnEviction, RunnerCause, RunnerOutcome } from '../../core/contract/index.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { MAX_CLOCK_SKEW_MS } from '../../core/domain/podConditions.ts';
import type { AttemptFailure, CurrentRunner, Suspicion } from './carriedState.ts';
import { isJobLost } from './jobLoss.ts';
import type { RunnerState } from './state.ts';
import type { Unregistered } from './unregister.ts';

/** Facts that the verdict depends on. */
export interface EndFacts {
  readonly cancel?: Cancellation;
  /** Failure of the attempt, if a deadline or a failed step ended it before the runner ended. */
  readonly failure?: AttemptFailure;
  /** Last observed state of the pod. Absent if there never was a pod. */
  readonly pod?: PodSnapshot;
  /** Whether Holdfast itself requested the deletion of the pod. */
  readonly stoppedByHoldfast: boolean;
  /**
   * Whether the registration was removed while the runner was running. A runner without a job then
   * exits by itself.
   */
  readonly removedWhileRunning?: boolean;
  /**
   * Suspicion because of which the runner's own workflow, and no one else, stopped it. The runner's
   * own reports are then doubtful.
   */
  readonly suspected?: Suspicion;
  readonly ephemeral: boolean;
  /** Kind of the runner. A plain command is not a runner of a CI server and is its own job. */
  readonly kind: RunnerKindName;
  /**
   * Whether the command uses `onTerm: checkpoint`: exit code 0 then means that the work is
   * complete, even if the command was asked to stop.
   */
  readonly checkpoints: boolean;
  readonly started: boolean;
  readonly wasOnline: boolean;
  /** Whether a registration existed, because its id is known or the runner was online. */
  readonly wasRegistered: boolean;
  readonly hadJob: boolean;
  /** Whether a job was running at the end, according to the runner itself or a job event. */
  readonly busyAtEnd: boolean;
  /** Whether a job event reports that the job of an ephemeral runner succeeded. */
  readonly jobSucceeded: boolean;
  /**
   * Whether the job ended without success after the runner had received its termination request,
   * which means that the request interrupted it.
   */
  readonly jobInterrupted: boolean;
  /** Last response of the CI server to a removal. */
  readonly removal?: Unregistered['removal'];
  readonly onEviction: OnEviction;
  /** Number of consecutive runners, including this one, whose container never started. */
  readonly neverStartedInARow: number;
  /** Number of consecutive runners, including this one, that were lost within ten minutes. */
  readonly shortLivedInARow: number;
  /** For `onEviction: resume`: whether the maximum number of attempts has been reached. */
  readonly lastAttempt?: boolean;
  /** For `onEviction: resume`: whether the workflow has reached its maximum age. */
  readonly durationExceeded?: boolean;
  /** For a plain command: whether its attempts together have run for as long as one job may. */
  readonly jobTimeUsed?: boolean;
}

/** Verdict that ends a runner workflow. */
export interface Verdict {
  readonly kind: 'end';
  readonly outcome: RunnerOutcome;
  readonly cause?: RunnerCause;
  readonly message: string;
}
/** Verdict that ends the workflow, or the replacement of its runner after `afterMs`. */
export type VerdictDecision =
  | Verdict
  | {
      readonly kind: 'replace';
      readonly cause: RunnerCause;
      readonly afterMs: number;
      readonly message: string;
    };

/** 128 + SIGKILL. */
const KILLED_EXIT_CODE = 137;
const MAX_NEVER_STARTED = 3;
const REPLACE_DELAYS_MS = [0, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000] as const;

/** Returns the facts that the verdict depends on. */
export function verdictFacts(
  state: RunnerState,
  { removal, stoppedByHoldfast, removedWhileRunning }: Unregistered,
): EndFacts {
  const { runner, spec, failure, neverStartedInARow, shortLivedInARow } = state;
  const cancel = state.verdictCancel;
  const { pod } = runner;
  const { hadJob } = state;
  // A runner that came online after its registration deadline and ran a job did not fail because of
  // that deadline.
  const failed = failure?.cause === 'never_registered' && hadJob ? undefined : failure;
  return {
    ...omitUndefined({ cancel, failure: failed, pod, removal, suspected: runner.suspected }),
    stoppedByHoldfast,
    removedWhileRunning,
    ephemeral: spec.ephemeral,
    kind: spec.pod.supervision.runnerKind,
    checkpoints: spec.pod.supervision.onTerm === 'checkpoint',
    // A runner that had a job has started, even if its pod was not observed again before it
    // disappeared.
    started: pod?.startedAt !== undefined || hadJob || removal === 'busy',
    wasOnline: runner.online,
    wasRegistered: runner.id !== undefined || runner.online,
    hadJob,
    busyAtEnd: state.observedActivity() === 'busy',
    jobSucceeded: runner.jobConclusion === 'success',
    jobInterrupted: failedAfterRequest(runner),
    onEviction: spec.onEviction,
    neverStartedInARow,
    shortLivedInARow,
    lastAttempt: runner.identity.attempt >= spec.maxAttempts,
    durationExceeded: Date.now() >= state.maxDurationDeadlineMs,
    jobTimeUsed: state.remainingJobMs === 0,
  };
}

/**
 * Whether a job failed after the termination of its pod had been requested. The failure has the
 * time of Temporal's clock, the request that of the API server's. In doubt the job was interrupted,
 * because an interrupted job must not count as one that did its work.
 */
function failedAfterRequest({ jobFailedAt, pod }: CurrentRunner): boolean {
  const requestedAt = Date.parse(pod?.terminationRequestedAt ?? '');
  return jobFailedAt !== undefined && jobFailedAt >= requestedAt - MAX_CLOCK_SKEW_MS;
}

/**
 * Returns the facts for the final verdict. The effects of the runner's own teardown do not count if
 * the runner was still running when it was unregistered. The exception is a job that started after
 * all, according to the exit record or, without a record, a job event: its pod reported it too late.
 * For a static runner an event counts only if the runner was lost before it was unregistered.
 *
 * @param facts - facts at the time when the runner was unregistered
 */
export function finalFacts(
  state: RunnerState,
  unregistered: Unregistered,
  facts: EndFacts,
): EndFacts {
  const is = verdictFacts(state, unregistered);
  if (facts.pod?.startedAt === undefined || facts.pod.ended) return is;
  const exit = is.pod?.exit;
  const job = exit?.record?.job;
  const { podBusy, jobs } = state.runner;
  // An event of a static runner may be about an old job. In doubt it is about the lost one.
  const inDoubt = podBusy === undefined || state.isIdleInDoubt;
  const counts = is.ephemeral
    ? !facts.hadJob
    : unregistered.removedWhileRunning !== true && inDoubt;
  const cameByEvent = job === undefined && jobs.running !== undefined && counts;
  const isRecorded = job === 'running' || job === 'interrupted';
  const { neverStartedInARow, shortLivedInARow } = is;
  return {
    ...facts,
    ...(isRecorded ? { pod: { ...facts.pod, ...omitUndefined({ exit }) } } : {}),
    ...(job === undefined && !cameByEvent ? {} : { busyAtEnd: isRecorded || cameByEvent }),
    neverStartedInARow,
    shortLivedInARow,
  };
}

/**
 * Decides the verdict after the end of this runner. An unknown final state is never `succeeded`.
 */
export function decideVerdict(f: EndFacts): VerdictDecision {
  if (f.cancel !== undefined) return whenCancelled(f, f.cancel);
  if (f.failure !== undefined) return end('errored', f.failure.message, f.failure.cause);
  const loss = lossOf(f);
  if (f.suspected !== undefined && !hasLost(f, loss) && !(f.ephemeral && f.hadJob))
    return whenSuspected(f.suspected);
  const exit = f.pod?.exit;
  if (exit?.oomKilled === true) return outOfMemory();
  if (exit?.record?.reason === 'timeout')
    return end('aborted', 'The command timed out.', 'run_timeout');
  if (f.pod?.reason === 'DeadlineExceeded')
    return end('aborted', 'The pod exceeded its activeDeadlineSeconds.', 'run_timeout');
  const initFailure = initFailureOf(f);
  if (initFailure !== undefined) return end('failed', `The runner could not start: ${initFailure}`);
  if (!takesJobs(f.kind)) return whenCommandEnded(f, loss);
  if (loss !== undefined && f.ephemeral && f.jobSucceeded && !hasLost(f, loss))
    return end('succeeded', `The runner completed its job, and was lost afterwards (${loss}).`);
  if (exit?.code === 0 && f.ephemeral && didItsJob(f, loss))
    return end('succeeded', 'The runner completed its job and exited with code 0.');
  return loss === undefined ? whenExited(f) : afterLoss(f, loss);
}

/**
 * Returns the failure message of an init container that failed by itself and so ended the pod
 * before its runner started. This is a user error, not a loss.
 */
function initFailureOf({ pod, started }: EndFacts): string | undefined {
  if (
    pod === undefined ||
    started ||
    !pod.ended ||
    pod.deleted ||
    pod.terminating ||
    pod.disruptionReason !== undefined
  )
    return undefined;
  return pod.problem?.kind === 'config' ? pod.problem.message : undefined;
}

/**
 * Whether the job of an ephemeral runner that exited with code 0 ran to its end. This needs a
 * proof.
 *
 * A runner that was asked to stop may exit with 0 without a job, so only an observed job counts.
 * Otherwise it had a job if one was observed, or if the CI server still calls it busy (the CI
 * server needs a moment to update).
 */
function didItsJob(f: EndFacts, loss: RunnerCause | undefined): boolean {
  if (f.pod?.exit?.record?.job === 'none' || hasLost(f, loss)) return false;
  return f.hadJob || (loss === undefined && (f.removal === 'busy' || removedItself(f)));
}

/**
 * Whether the registration disappeared without any request of Holdfast. For a pod that does not
 * report its state, this is the only proof of a job. A runner that never came online leaves its
 * registration behind. A runner with a short job may end before any check of whether it is online.
 *
 * A runner may also exit with 0 after another party has removed its registration. Nothing
 * distinguishes that case.
 */
function removedItself({ pod, wasRegistered, removal }: EndFacts): boolean {
  return (
    pod?.online === undefined &&
    pod?.exit?.record === undefined &&
    wasRegistered &&
    removal === 'absent'
  );
}

/**
 * Whether the command ran to its end. A command that was asked to stop and exits with 0 may have
 * stopped halfway, so only the supervisor's record or the checkpoint policy can prove completion.
 */
function isComplete({ pod, checkpoints }: EndFacts, loss: RunnerCause | undefined): boolean {
  const exit = pod?.exit;
  if (exit?.code !== 0) return false;
  if (checkpoints) return true;
  return exit.record === undefined ? loss === undefined : exit.record.reason === undefined;
}

/**
 * Decides for a plain command, which succeeds only if it ran to its end and its files were stored.
 */
function whenCommandEnded(f: EndFacts, loss: RunnerCause | undefined): VerdictDecision {
  const uploadFailure = notStoredOf(f);
  if (isComplete(f, loss) && uploadFailure !== undefined)
    return end(
      uploadFailure.by === 'step' ? 'failed' : 'errored',
      `The command exited with code 0, but its artifacts were not stored: ${uploadFailure.why}`,
    );
  if (isComplete(f, loss)) return end('succeeded', 'The command exited with code 0.');
  if (loss !== undefined) return afterLoss(f, loss);
  if (f.pod?.exit?.code === 0)
    return end(
      'errored',
      'The command was stopped from inside its pod and exited with code 0.',
      'agent_lost',
    );
  return whenExited(f);
}

/**
 * Returns the upload failure. An upload that was still running when its time was over or its pod
 * was deleted counts as failed.
 */
function notStoredOf({ pod }: EndFacts): NonNullable<PodSnapshot['exit']>['uploadFailure'] {
  return (
    pod?.exit?.uploadFailure ??
    (pod?.uploadingUntil === undefined
      ? undefined
      : { by: 'store', why: 'the uploader did not end in time' })
  );
}

/** Whether a job was lost with the runner, or with the command that is its own job. */
function hasLost(f: EndFacts, loss: RunnerCause | undefined): boolean {
  if (!takesJobs(f.kind)) return f.started;
  const { pod, ephemeral, started, busyAtEnd, jobSucceeded, jobInterrupted, removal } = f;
  const { stoppedByHoldfast, hadJob } = f;
  return isJobLost({
    ephemeral,
    // A runner that ran until its teardown had reported itself as idle.
    started: started && pod?.ended !== false,
    busyAtEnd,
    jobSucceeded,
    jobInterrupted,
    hadJob,
    cutLoose: f.removedWhileRunning === true,
    takenAway: loss !== undefined || stoppedByHoldfast,
    ...omitUndefined({ removal, exitCode: pod?.exit?.code, record: pod?.exit?.record?.job }),
  });
}

/**
 * Returns the verdict of a cancelled workflow, which ends whatever happened to its runner. A job
 * that was lost although a drain was to let it finish counts as lost all the same.
 */
export function whenCancelled(f: EndFacts, cancel: Cancellation): Verdict {
  const because = cancel.reason === '' ? '' : `: ${cancel.reason}`;
  if (cancel.by === 'drain') return whenDrained(f, because);
  // A drain lets a job finish. If a job arrived after all and was lost, that loss was not
  // requested.
  const lost = cancel.mode === 'drain' ? lostInDrain(f, because) : undefined;
  if (lost !== undefined) return lost;
  return end(
    'aborted',
    `The runner was ended (${cancel.by}, ${cancel.mode})${because}.`,
    cancel.by,
  );
}

/**
 * Returns the verdict of a drained runner: success, unless something failed meanwhile. A job that
 * was lost during the drain counts as lost.
 */
function whenDrained(f: EndFacts, because: string): Verdict {
  if (f.failure !== undefined) return end('errored', f.failure.message, f.failure.cause);
  const exit = f.pod?.exit;
  const loss = lossOf(f);
  if (exit?.oomKilled === true) return outOfMemory();
  const lost = lostInDrain(f, because);
  if (lost !== undefined) return lost;
  // A static runner whose registration was removed is stopped by its own teardown, so its exit code
  // has no meaning.
  const leftByItself = f.removedWhileRunning === true && !hasLost(f, loss);
  return crashed(f, loss) && !leftByItself
    ? whenExited(f)
    : end('succeeded', `The runner was drained${because}.`);
}

/** Returns the verdict on a job that was lost during a drain, or undefined if none was lost. */
function lostInDrain(f: EndFacts, because: string): Verdict | undefined {
  const loss = lossOf(f);
  if (!takesJobs(f.kind))
    return f.started && loss !== undefined && !isComplete(f, loss)
      ? end('errored', `The command was lost in a drain${because} (${loss}).`, loss)
      : undefined;
  if (crashed(f, loss) || !hasLost(f, loss)) return undefined;
  const cause = loss ?? 'agent_lost';
  return end(
    'errored',
    `The runner was lost while it ran a job, in a drain${because} (${cause}).`,
    cause,
  );
}

/**
 * Returns the cause if a job of the CI server was lost because its runner was taken away. Not if
 * someone ended the runner, the job ran out of memory, storage or time, or the runner never had a job.
 */
export function lostJobCause(f: EndFacts): RunnerCause | undefined {
  const { cancel, failure, kind, pod } = f;
  const wasEnded = cancel !== undefined && cancel.by !== 'drain' && cancel.mode !== 'drain';
  if (!takesJobs(kind) || wasEnded || failure !== undefined) return undefined;
  const isOwnEnd =
    pod?.exit?.oomKilled === true ||
    pod?.exit?.record?.reason === 'timeout' ||
    pod?.reason === 'DeadlineExceeded' ||
    // The kubelet evicts for a limit of the pod itself without this condition.
    (pod?.reason === 'Evicted' && pod.disruptionReason === undefined);
  const loss = lossOf(f);
  return isOwnEnd || loss === undefined || !hasLost(f, loss) ? undefined : loss;
}

/** Whether the runner's own process failed without having been asked to stop. */
function crashed({ pod, stoppedByHoldfast }: EndFacts, loss: RunnerCause | undefined): boolean {
  const exit = pod?.exit;
  return (
    exit !== undefined &&
    exit.code !== 0 &&
    exit.record?.job !== 'interrupted' &&
    loss === undefined &&
    !stoppedByHoldfast
  );
}

function outOfMemory(): Verdict {
  return end(
    'failed',
    'The runner was killed: out of memory. Raise its memory limit.',
    'oom_killed',
  );
}

/**
 * Returns the cause if the runner was taken away from outside. Stops by Holdfast itself and
 * commands that had already ended are not losses.
 */
function lossOf(f: EndFacts): RunnerCause | undefined {
  const { pod, stoppedByHoldfast } = f;
  return pod === undefined || stoppedByHoldfast || commandEndedByItself(f)
    ? undefined
    : lossCause(pod);
}

/**
 * Whether the command ended before anything asked it to stop, according to the supervisor's record.
 * What happened to its pod afterwards is not a loss. A node under memory pressure may kill the
 * process first and evict the pod afterwards, so exit code 137 does not count.
 */
function commandEndedByItself({ pod, kind }: EndFacts): boolean {
  const exit = pod?.exit;
  return (
    !takesJobs(kind) &&
    exit?.record !== undefined &&
    exit.record.reason === undefined &&
    exit.code !== KILLED_EXIT_CODE
  );
}

/**
 * Returns the cause if a runner was taken away from outside, or undefined if its container ended by
 * itself.
 */
export function lossCause(pod: PodSnapshot): RunnerCause | undefined {
  switch (pod.disruptionReason) {
    case undefined:
      break;
    case 'PreemptionByScheduler':
    case 'PreemptionByKubeScheduler':
      return 'preempted';
    case 'DeletionByTaintManager':
    case 'DeletionByPodGC':
      return 'node_lost';
    case 'TerminationByKubelet':
      // The kubelet uses this one reason for evictions, for preemption by critical pods and for
      // node shutdown.
      if (pod.reason === 'Preempting') return 'preempted';
      return pod.reason === 'Evicted' ? 'evicted' : 'node_shutdown';
    default:
      return 'evicted';
  }
  if (pod.reason === 'Evicted') return 'evicted';
  if (pod.reason === 'NodeLost') return 'node_lost';
  if (pod.reason === 'Shutdown' || pod.reason === 'NodeShutdown' || pod.reason === 'Terminated')
    return 'node_shutdown';
  if (pod.reason === 'Preempting') return 'preempted';
  if (pod.terminating || (pod.deleted && pod.exit === undefined)) return 'deleted_externally';
  return pod.ended && pod.exit === undefined ? 'agent_lost' : undefined;
}

/** Decides between a replacement and a final verdict after the loss of a runner. */
function afterLoss(f: EndFacts, cause: RunnerCause): VerdictDecision {
  if (!f.started) {
    if (f.neverStartedInARow > MAX_NEVER_STARTED) {
      return end(
        'errored',
        `${f.neverStartedInARow} runners in a row were lost before their container started (${cause}).`,
        cause,
      );
    }
    return replace(cause, f.neverStartedInARow, 'before its container started');
  }
  const busy = hasLost(f, cause);
  if (busy && f.onEviction === 'fail')
    return end('errored', `The runner was lost while it ran a job (${cause}).`, cause);
  if (busy && f.jobTimeUsed === true)
    return end(
      'aborted',
      `The command was lost (${cause}), and its attempts together reached the cap of one job (jobTimeoutCap).`,
      'run_timeout',
    );
  if (busy && f.onEviction === 'resume' && f.durationExceeded === true)
    return end(
      'aborted',
      `The command was lost (${cause}), and the runner is too old for another attempt (timeouts.maxAge).`,
      'run_timeout',
    );
  if (busy && f.onEviction === 'resume' && f.lastAttempt === true)
    return end(
      'errored',
      `The command was lost (${cause}) in its last attempt (maxAttempts).`,
      cause,
    );
  return replace(
    cause,
    f.shortLivedInARow,
    busy ? 'while it ran a job' : 'while idle',
    f.onEviction === 'resume',
  );
}

function replace(
  cause: RunnerCause,
  inARow: number,
  when: string,
  resumes = false,
): VerdictDecision {
  const afterMs =
    REPLACE_DELAYS_MS[Math.min(Math.max(inARow, 1), REPLACE_DELAYS_MS.length) - 1] ?? 0;
  return {
    kind: 'replace',
    cause,
    afterMs,
    message: `The runner was lost ${when} (${cause}): ${resumes ? 'the next attempt resumes from the checkpoint' : 'it is replaced'}.`,
  };
}

function whenSuspected({ cause, why: reason }: Suspicion): VerdictDecision {
  return { kind: 'replace', cause, afterMs: 0, message: `${reason}: it is replaced.` };
}

/** Returns the verdict on a runner whose container ended by itself. */
function whenExited(f: EndFacts): Verdict {
  const exit = f.pod?.exit;
  if (exit === undefined)
    return end('errored', 'The runner ended, and its exit status is unknown.', 'agent_lost');
  if (RUNNER_KINDS[f.kind].exitStatuses[exit.code] === 'runner_deprecated') {
    return end(
      'errored',
      `The CI server no longer accepts this version of the runner (exit code ${exit.code}): use a newer image.`,
      'runner_deprecated',
    );
  }
  if (!f.wasOnline && takesJobs(f.kind) && exit.record?.reason !== undefined)
    return end(
      'errored',
      'The runner did not come online and was ended by its startup probe.',
      'never_registered',
    );
  const upload = exit.uploadFailure && `Its artifacts were not stored: ${exit.uploadFailure.why}`;
  if (exit.code !== 0)
    return end(
      'failed',
      [`The runner exited with code ${exit.code}.`, exit.message, upload].filter(Boolean).join(' '),
    );
  return whenExitedWithZero(f);
}

/** Returns the verdict on a runner that exited with code 0 without proof that it ran its job. */
function whenExitedWithZero(f: EndFacts): Verdict {
  if (f.removal === 'busy')
    return end(
      'errored',
      'The runner exited with code 0, but the CI server still has its job running.',
      'agent_lost',
    );
  if (hasLost(f, undefined))
    return end('errored', 'The runner exited with code 0 while its job was running.', 'agent_lost');
  if (!f.wasOnline)
    return end(
      'errored',
      'The runner exited with code 0 before it was ever online.',
      'never_registered',
    );
  if (f.removal === 'absent')
    return end(
      'errored',
      'The registration was removed by someone else, and the runner ended.',
      'deleted_externally',
    );
  if (!f.ephemeral)
    return end('errored', 'The static runner exited with code 0 without a request.', 'agent_lost');
  return end('errored', 'The runner exited with code 0 without having run a job.', 'agent_lost');
}

function end(outcome: RunnerOutcome, message: string, cause?: RunnerCause): Verdict {
  return { kind: 'end', outcome, message, ...omitUndefined({ cause }) };
}
