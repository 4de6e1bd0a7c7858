/** Decision after a runner has ended: the verdict on its workflow, or a replacement. Pure. */
import {
  RUNNER_KINDS,
  takesJobs,
  type RunnerKindName,
} from '../../core/domain/runnerKinds/runnerKinds.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { OnEviction, RunnerCause, RunnerOutcome } from '../../core/contract/index.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { AttemptFailure, Suspicion } from './carriedState.ts';
import { isJobLost } from './jobLoss.ts';
import type { RunnerState } from './state.ts';
import type { Unregistered } from './unregister.ts';

/** Facts that the verdict depends on. */
export interface EndFacts {
  readonly cancel?: Cancellation;
  /** A deadline or a failed step ended the attempt before the runner did. */
  readonly failure?: AttemptFailure;
  /** The pod as last seen; absent when there never was one. */
  readonly pod?: PodSnapshot;
  /** Holdfast itself asked for the pod's deletion. */
  readonly stoppedByHoldfast: boolean;
  /** Its registration was removed while it lived: then a runner without a job ends by itself. */
  readonly removedWhileRunning?: boolean;
  /** Nobody but its own life wanted it gone, which doubts its word. */
  readonly suspected?: Suspicion;
  readonly ephemeral: boolean;
  /** No CI server's runner, but a command that is its own job. */
  /** Kind of the runner. */
  readonly kind: RunnerKindName;
  /** `onTerm: checkpoint`: exit code 0 says that the work is complete, also of a command that was told to go. */
  readonly checkpoints: boolean;
  readonly started: boolean;
  readonly wasOnline: boolean;
  /** The id of its registration is known: there was one. */
  readonly wasRegistered: boolean;
  readonly hadJob: boolean;
  /** A job was running at the end, by the runner's own signal or a job event. */
  readonly busyAtEnd: boolean;
  /** Its job ended otherwise than in success after the runner had been told to go: the goodbye interrupted it. */
  readonly jobInterrupted: boolean;
  /** The CI server's last answer to a removal. */
  readonly removal?: Unregistered['removal'];
  readonly onEviction: OnEviction;
  /** Runners in a row, this one included, whose container never started. */
  readonly neverStartedInARow: number;
  /** Runners in a row, this one included, that were lost within ten minutes. */
  readonly shortLivedInARow: number;
  /** Of a life that resumes: its attempts are used up. */
  readonly lastAttempt?: boolean;
  /** Of a life that resumes: its time is. */
  readonly durationExceeded?: boolean;
  /** Of a plain command: its attempts together have run for as long as one job may. */
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

/** What the verdict goes by. */
export function verdictFacts(
  state: RunnerState,
  { removal, stoppedByHoldfast, removedWhileRunning }: Unregistered,
): EndFacts {
  const { runner, spec, failure, neverStartedInARow, shortLivedInARow } = state;
  const cancel = state.verdictCancel;
  const { pod } = runner;
  const { hadJob } = state;
  // A runner that came online after its deadline and ran a job was not lost to it.
  const failed = failure?.cause === 'never_registered' && hadJob ? undefined : failure;
  return {
    ...omitUndefined({ cancel, failure: failed, pod, removal, suspected: runner.suspected }),
    stoppedByHoldfast,
    removedWhileRunning,
    ephemeral: spec.ephemeral,
    kind: spec.pod.supervision.runnerKind,
    checkpoints: spec.pod.supervision.onTerm === 'checkpoint',
    // A runner that had a job has started, whether or not its pod was seen again before it vanished.
    started: pod?.startedAt !== undefined || hadJob || removal === 'busy',
    wasOnline: runner.online,
    wasRegistered: runner.id !== undefined || runner.online,
    hadJob,
    busyAtEnd: state.observedActivity() === 'busy',
    jobInterrupted:
      runner.jobFailedAt !== undefined &&
      runner.jobFailedAt >= Date.parse(pod?.terminationRequestedAt ?? ''),
    onEviction: spec.onEviction,
    neverStartedInARow,
    shortLivedInARow,
    lastAttempt: runner.identity.attempt >= spec.maxAttempts,
    durationExceeded: Date.now() >= state.maxDurationDeadlineMs,
    jobTimeUsed: state.remainingJobMs === 0,
  };
}

/**
 * What the final verdict goes by. What its own tear-down does to a runner that lived until then says nothing, but for a record of a job that
 * had come after all.
 * @param facts - as they were when the runner was unregistered
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
  const cameAfterAll = job === 'running' || job === 'interrupted';
  const { neverStartedInARow, shortLivedInARow } = is;
  return {
    ...facts,
    ...(cameAfterAll ? { pod: { ...facts.pod, ...omitUndefined({ exit }) } } : {}),
    ...(job === undefined ? {} : { busyAtEnd: cameAfterAll }),
    neverStartedInARow,
    shortLivedInARow,
  };
}

/** The verdict on this runner's end. An unknown final state is never `succeeded`. */
export function decideVerdict(f: EndFacts): VerdictDecision {
  if (f.cancel !== undefined) return whenCancelled(f, f.cancel);
  if (f.failure !== undefined) return end('errored', f.failure.message, f.failure.cause);
  const loss = lossOf(f);
  if (f.suspected !== undefined && !hasLost(f, loss) && !(f.ephemeral && f.hadJob))
    return whenSuspected(f.suspected);
  const exit = f.pod?.exit;
  if (exit?.oomKilled === true) return outOfMemory();
  if (exit?.record?.reason === 'timeout')
    return end('aborted', 'The command ran into its timeout.', 'run_timeout');
  if (f.pod?.reason === 'DeadlineExceeded')
    return end('aborted', 'The pod ran into its activeDeadlineSeconds.', 'run_timeout');
  const initFailure = initFailureOf(f);
  if (initFailure !== undefined) return end('failed', `The runner could not start: ${initFailure}`);
  if (!takesJobs(f.kind)) return whenCommandEnded(f, loss);
  if (exit?.code === 0 && f.ephemeral && didItsJob(f, loss))
    return end('succeeded', 'The runner did its job and exited with code 0.');
  return loss === undefined ? whenExited(f) : afterLoss(f, loss);
}

/** An init container that failed by itself ends the pod before its runner starts: the user's own doing, not a loss. */
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
 * Whether the job of an ephemeral runner that exited with 0 ran to its end. That needs a proof. One that was told to go may exit with 0
 * without a job: then only a job that was seen counts. Left alone, it had a job if one was seen, or if the CI server calls it busy still (it
 * needs a moment).
 */
function didItsJob(f: EndFacts, loss: RunnerCause | undefined): boolean {
  if (f.pod?.exit?.record?.job === 'none' || hasLost(f, loss)) return false;
  return f.hadJob || (loss === undefined && (f.removal === 'busy' || removedItself(f)));
}

/**
 * Of a pod that does not tell this is all that tells: there was a registration, and it is gone, by no try of ours. A runner that never came
 * online leaves its own behind; one with a quick job may be over before anybody has looked whether it is online. (A runner may exit with 0
 * also when somebody else has removed the registration: nothing tells that apart.)
 */
function removedItself({ pod, wasRegistered, removal }: EndFacts): boolean {
  return (
    pod?.online === undefined &&
    pod?.exit?.record === undefined &&
    wasRegistered &&
    removal === 'absent'
  );
}

/** Did the command run to its end? One that was told to go and exits with 0 may have stopped half-way: only the supervisor, or a policy, tells. */
function isComplete({ pod, checkpoints }: EndFacts, loss: RunnerCause | undefined): boolean {
  const exit = pod?.exit;
  if (exit?.code !== 0) return false;
  if (checkpoints) return true;
  return exit.record === undefined ? loss === undefined : exit.record.reason === undefined;
}

function whenCommandEnded(f: EndFacts, loss: RunnerCause | undefined): VerdictDecision {
  const uploadFailure = notStoredOf(f);
  if (isComplete(f, loss) && uploadFailure !== undefined)
    return end(
      uploadFailure.by === 'step' ? 'failed' : 'errored',
      `The command exited with code 0, and what it left was not stored: ${uploadFailure.why}`,
    );
  if (isComplete(f, loss)) return end('succeeded', 'The command exited with code 0.');
  if (loss !== undefined) return afterLoss(f, loss);
  if (f.pod?.exit?.code === 0)
    return end(
      'errored',
      'The command was stopped from inside its pod, and exited with code 0.',
      'agent_lost',
    );
  return whenExited(f);
}

/** Also what was still being stored when its time was over, or its pod was gone. */
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
  const { pod, ephemeral, started, busyAtEnd, jobInterrupted, removal, stoppedByHoldfast, hadJob } =
    f;
  return isJobLost({
    ephemeral,
    // One that lived until its tear-down said by itself that it was idle.
    started: started && pod?.ended !== false,
    busyAtEnd,
    jobInterrupted,
    hadJob,
    cutLoose: f.removedWhileRunning === true,
    takenAway: loss !== undefined || stoppedByHoldfast,
    ...omitUndefined({ removal, exitCode: pod?.exit?.code, record: pod?.exit?.record?.job }),
  });
}

/** A cancelled life ends, whatever became of its runner. A job that a drain was to leave its time, and that was lost, is lost all the same. */
export function whenCancelled(f: EndFacts, cancel: Cancellation): Verdict {
  const because = cancel.reason === '' ? '' : `: ${cancel.reason}`;
  if (cancel.by === 'drain') return whenDrained(f, because);
  // A drain leaves a job its time: one that came after all, and was lost, is no part of what was asked for.
  const lost = cancel.mode === 'drain' ? lostInDrain(f, because) : undefined;
  if (lost !== undefined) return lost;
  return end(
    'aborted',
    `The runner was ended (${cancel.by}, ${cancel.mode})${because}.`,
    cancel.by,
  );
}

/** Retired in good order, unless something went wrong meanwhile: a job that was lost in a drain is lost all the same. */
function whenDrained(f: EndFacts, because: string): Verdict {
  if (f.failure !== undefined) return end('errored', f.failure.message, f.failure.cause);
  const exit = f.pod?.exit;
  const loss = lossOf(f);
  if (exit?.oomKilled === true) return outOfMemory();
  const lost = lostInDrain(f, because);
  if (lost !== undefined) return lost;
  // A static runner whose registration is gone is stopped by its own teardown: then its exit code says nothing.
  const leftByItself = f.removedWhileRunning === true && !hasLost(f, loss);
  return crashed(f, loss) && !leftByItself
    ? whenExited(f)
    : end('succeeded', `The runner was drained${because}.`);
}

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

/** Whether the runner's own process ended badly, and nothing had told it to go. */
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

function lossOf(f: EndFacts): RunnerCause | undefined {
  const { pod, stoppedByHoldfast } = f;
  return pod === undefined || stoppedByHoldfast || commandEndedByItself(f)
    ? undefined
    : lossCause(pod);
}

/** By the supervisor's word nothing had told the command to stop: what befell its pod afterwards took nothing away. Short of memory, a node may kill first and evict then. */
function commandEndedByItself({ pod, kind }: EndFacts): boolean {
  const exit = pod?.exit;
  return (
    !takesJobs(kind) &&
    exit?.record !== undefined &&
    exit.record.reason === undefined &&
    exit.code !== KILLED_EXIT_CODE
  );
}

/** A runner taken away from outside, and why; `undefined` when its container ended by itself. */
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
      // The kubelet gives this one reason for its evictions, for making room for critical pods, and for the node's shutdown.
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
      `The command was lost (${cause}), and its attempts together have run for as long as one job may (jobTimeoutCap).`,
      'run_timeout',
    );
  if (busy && f.onEviction === 'resume' && f.durationExceeded === true)
    return end(
      'aborted',
      `The command was lost (${cause}), and the life is too old to try again (timeouts.maxAge).`,
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
    message: `The runner was lost ${when} (${cause}): ${resumes ? 'the next attempt goes on from its saved state' : 'another takes its place'}.`,
  };
}

function whenSuspected({ cause, why: reason }: Suspicion): VerdictDecision {
  return { kind: 'replace', cause, afterMs: 0, message: `${reason}: another takes its place.` };
}

function whenExited(f: EndFacts): Verdict {
  const exit = f.pod?.exit;
  if (exit === undefined)
    return end('errored', 'The runner ended and nothing says how.', 'agent_lost');
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
      'The runner did not come online, and was ended for it by its startup probe.',
      'never_registered',
    );
  const upload = exit.uploadFailure && `What it left was not stored: ${exit.uploadFailure.why}`;
  if (exit.code !== 0)
    return end(
      'failed',
      [`The runner exited with code ${exit.code}.`, exit.message, upload].filter(Boolean).join(' '),
    );
  return whenExitedWithZero(f);
}

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
      'The registration was removed from outside, and the runner ended.',
      'deleted_externally',
    );
  if (!f.ephemeral)
    return end(
      'errored',
      'The static runner exited with code 0, which nobody had asked it to.',
      'agent_lost',
    );
  return end('errored', 'The runner exited with code 0 without having run a job.', 'agent_lost');
}

function end(outcome: RunnerOutcome, message: string, cause?: RunnerCause): Verdict {
  return { kind: 'end', outcome, message, ...omitUndefined({ cause }) };
}
