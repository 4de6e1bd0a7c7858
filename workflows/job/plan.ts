/**
 * Decides the next action of a job, from the state of its steps, the requests and the clock. Pure.
 */
import type {
  CancelRequest,
  JobStage,
  RunnerCause,
  RunnerOutcome,
  StepState,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';

/** Facts about a step that the plan depends on. */
export interface StepFacts {
  readonly stage: JobStage;
  readonly name: string;
  readonly bestEffort: boolean;
  readonly skipOnSuccess: boolean;
  readonly state: StepState;
  /** Outcome of a step that has ended. */
  readonly outcome?: RunnerOutcome;
  readonly cause?: RunnerCause;
  /** Whether the step's workflow is running. After the end of the step it cleans up. */
  readonly isRunning: boolean;
  /** Mode in which the step was requested to stop, if it was. */
  readonly stopRequested?: StopMode;
}

/** Facts that the plan depends on. Times are in ms since the epoch. */
export interface JobFacts {
  /** Steps in their order. One step runs at a time. */
  readonly steps: readonly StepFacts[];
  /** Strongest cancel request, by a user or a deadline, before the end of the last step. */
  readonly cancel?: Cancellation;
  /** Strongest cancel request after the end of the last step. It does not change the verdict. */
  readonly lateCancel?: Cancellation;
  readonly nowMs: number;
  /** Deadline of the job's timeout. Absent before its first step has a pod. */
  readonly timeoutAtMs?: number;
  /** Deadline of the job's maxAge. */
  readonly maxDurationDeadlineMs: number;
  /** End of the job's grace period. Absent before it is interrupted. */
  readonly graceEndsAtMs?: number;
  /** Whether the end of the grace period has been recorded. */
  readonly outOfGrace: boolean;
}

type StopMode = 'stop' | 'force';

/** Final verdict on a job. */
export interface JobVerdict {
  readonly outcome: RunnerOutcome;
  readonly cause?: RunnerCause;
  /** Verdict in one sentence. */
  readonly message: string;
}

/** Next action of a job. `step` is an index into {@link JobFacts.steps}. */
export type JobAction =
  | { readonly kind: 'interrupt'; readonly deadline: 'timeout' | 'maxAge' }
  | { readonly kind: 'outOfGrace' }
  | { readonly kind: 'start'; readonly step: number }
  | {
      readonly kind: 'stop';
      readonly step: number;
      readonly mode: StopMode;
      readonly by: NonNullable<CancelRequest['stopReason']>;
      readonly reason: string;
    }
  | {
      readonly kind: 'leave';
      readonly step: number;
      readonly state: 'skipped' | 'not_run';
      readonly reason: string;
    }
  | { readonly kind: 'wait'; readonly step: number; readonly untilMs?: number }
  | { readonly kind: 'end'; readonly verdict: JobVerdict };

/**
 * Decides the next action. The first rule that matches decides; docs/jobs.md has a
 * summary.
 */
export function nextAction(f: JobFacts): JobAction {
  const next = f.steps.findIndex(({ state }) => state === 'running' || state === 'waiting');
  const step = f.steps[next];
  if (step === undefined) return waitForDeletion(f);
  if (!isInterrupted(f.cancel)) {
    if (f.timeoutAtMs !== undefined && f.nowMs >= f.timeoutAtMs)
      return { kind: 'interrupt', deadline: 'timeout' };
    if (f.nowMs >= f.maxDurationDeadlineMs) return { kind: 'interrupt', deadline: 'maxAge' };
  }
  if (
    f.cancel?.mode !== 'force' &&
    !f.outOfGrace &&
    f.graceEndsAtMs !== undefined &&
    f.nowMs >= f.graceEndsAtMs
  )
    return { kind: 'outOfGrace' };
  return step.state === 'running' ? whileItRuns(f, step, next) : skipReason(f, step, next);
}

/**
 * Whether the job is interrupted. Every request except a drain interrupts: the running step is
 * stopped, and all remaining steps share the job's grace period.
 */
export function isInterrupted(cancel: Cancellation | undefined): boolean {
  return cancel !== undefined && cancel.mode !== 'drain';
}

function whileItRuns(f: JobFacts, { stage, stopRequested }: StepFacts, step: number): JobAction {
  const { cancel, outOfGrace, graceEndsAtMs, timeoutAtMs, maxDurationDeadlineMs } = f;
  if (cancel?.mode === 'force' && stopRequested !== 'force')
    return { kind: 'stop', step, mode: 'force', by: stopReasonFor(cancel), reason: cancel.reason };
  if (cancel?.mode === 'stop' && stage !== 'post' && stopRequested === undefined)
    return { kind: 'stop', step, mode: 'stop', by: stopReasonFor(cancel), reason: cancel.reason };
  // Repeated stop requests do not shorten the job's grace period. Only force does.
  if (outOfGrace && stopRequested === undefined)
    return {
      kind: 'stop',
      step,
      mode: 'stop',
      by: 'timeout',
      reason: "the job's grace period is over",
    };
  if (!isInterrupted(cancel))
    return {
      kind: 'wait',
      step,
      untilMs: Math.min(timeoutAtMs ?? maxDurationDeadlineMs, maxDurationDeadlineMs),
    };
  return {
    kind: 'wait',
    step,
    ...(outOfGrace || cancel?.mode === 'force' ? {} : omitUndefined({ untilMs: graceEndsAtMs })),
  };
}

/**
 * Waits for the deletion of all pods. A job ends after the last of its pods, so that its successor
 * can rely on that.
 */
function waitForDeletion(f: JobFacts): JobAction {
  const { steps, cancel, lateCancel } = f;
  const step = steps.findIndex(({ isRunning }) => isRunning);
  if (step < 0) return { kind: 'end', verdict: verdictOn(f) };
  const forced = [cancel, lateCancel].find((each) => each?.mode === 'force');
  if (forced !== undefined && steps[step]?.stopRequested !== 'force')
    return { kind: 'stop', step, mode: 'force', by: stopReasonFor(forced), reason: forced.reason };
  return { kind: 'wait', step };
}

function stopReasonFor({ by }: Cancellation): NonNullable<CancelRequest['stopReason']> {
  if (by === 'run_timeout') return 'timeout';
  return by === 'superseded' ? 'superseded' : 'cancelled';
}

function skipReason(
  { steps, cancel, outOfGrace }: JobFacts,
  { stage, skipOnSuccess }: StepFacts,
  step: number,
): JobAction {
  const notRun = (reason: string): JobAction => ({ kind: 'leave', step, state: 'not_run', reason });
  const before = steps.slice(0, step);
  if (cancel?.mode === 'force') return notRun('the job was ended by force');
  if (stage === 'post') {
    if (outOfGrace) return notRun("the job's grace period was over");
    if (
      skipOnSuccess &&
      before.every(({ state, outcome }) => state === 'skipped' || outcome === 'succeeded')
    )
      return { kind: 'leave', step, state: 'skipped', reason: 'all earlier steps succeeded' };
    return { kind: 'start', step };
  }
  if (isInterrupted(cancel)) return notRun('the job was interrupted');
  const bad = before.find(isFailure);
  if (bad !== undefined) return notRun(`${bad.stage} ${bad.name} ${bad.outcome}`);
  if (
    cancel !== undefined &&
    !before.some((other) => other.stage === stage && other.state === 'ended')
  )
    return notRun('the job is drained');
  return { kind: 'start', step };
}

function isFailure({ outcome }: StepFacts): boolean {
  return outcome !== undefined && outcome !== 'succeeded';
}

/**
 * Returns the verdict. The first required step that did not succeed decides, whatever the outcome
 * of the later steps. An interruption takes precedence.
 */
function verdictOn({ steps, cancel }: JobFacts): JobVerdict {
  const bad = steps.filter((step) => isFailure(step) && !step.bestEffort);
  const list = bad
    .map(
      ({ stage, name, outcome, cause }) =>
        `${stage} ${name} ${[outcome, cause].filter(Boolean).join('/')}`,
    )
    .join(', ');
  if (cancel !== undefined) {
    const { by, reason, mode } = cancel;
    const cause = by === 'drain' ? 'cancelled' : by;
    return {
      outcome: 'aborted',
      cause,
      message: `The job was ended (${cause}, ${mode})${reason === '' ? '' : `: ${reason}`}${list === '' ? '' : `; ${list}`}.`,
    };
  }
  const [first] = bad;
  if (first?.outcome === undefined)
    return { outcome: 'succeeded', message: 'Each step that counts succeeded.' };
  return {
    outcome: first.outcome,
    ...omitUndefined({ cause: first.cause }),
    message: `Not every step succeeded: ${list}.`,
  };
}
