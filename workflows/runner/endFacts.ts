/** Facts about the end of a runner, which its verdict depends on. Pure. */
import type { OnEviction } from '../../core/contract/index.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { MAX_CLOCK_SKEW_MS } from '../../core/domain/podConditions.ts';
import type { RunnerKindName } from '../../core/domain/runnerKinds/runnerKinds.ts';
import type { AttemptFailure, CurrentRunner, Suspicion } from './carriedState.ts';
import { maxDurationDeadlineMs, remainingJobMs } from './jobDeadline.ts';
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
    durationExceeded: Date.now() >= maxDurationDeadlineMs(state),
    jobTimeUsed: remainingJobMs(state) === 0,
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
