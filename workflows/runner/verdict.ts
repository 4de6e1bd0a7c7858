/**
 * Decides what follows after a runner has ended: the verdict on its workflow, or a replacement.
 * Pure.
 */
import { RUNNER_KINDS, takesJobs } from '../../core/domain/runnerKinds/runnerKinds.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { RunnerCause, RunnerOutcome } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Suspicion } from './carriedState.ts';
import { didItsJob, initFailureOf, isComplete, notStoredOf } from './completion.ts';
import type { EndFacts } from './endFacts.ts';
import { hasCrashed, hasLostJob, lossOf } from './runnerLoss.ts';

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

const MAX_NEVER_STARTED = 3;
const REPLACE_DELAYS_MS = [0, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000] as const;

/**
 * Decides the verdict after the end of this runner. An unknown final state is never `succeeded`.
 */
export function decideVerdict(f: EndFacts): VerdictDecision {
  if (f.cancel !== undefined) return whenCancelled(f, f.cancel);
  if (f.failure !== undefined) return end('errored', f.failure.message, f.failure.cause);
  const loss = lossOf(f);
  if (f.suspected !== undefined && !hasLostJob(f, loss) && !(f.ephemeral && f.hadJob))
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
  if (loss !== undefined && f.ephemeral && f.jobSucceeded && !hasLostJob(f, loss))
    return end('succeeded', `The runner completed its job, and was lost afterwards (${loss}).`);
  if (exit?.code === 0 && f.ephemeral && didItsJob(f, loss))
    return end('succeeded', 'The runner completed its job and exited with code 0.');
  return loss === undefined ? whenExited(f) : afterLoss(f, loss);
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
  const leftByItself = f.removedWhileRunning === true && !hasLostJob(f, loss);
  return hasCrashed(f, loss) && !leftByItself
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
  if (hasCrashed(f, loss) || !hasLostJob(f, loss)) return undefined;
  const cause = loss ?? 'agent_lost';
  return end(
    'errored',
    `The runner was lost while it ran a job, in a drain${because} (${cause}).`,
    cause,
  );
}

function outOfMemory(): Verdict {
  return end(
    'failed',
    'The runner was killed: out of memory. Raise its memory limit.',
    'oom_killed',
  );
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
  const busy = hasLostJob(f, cause);
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
  if (hasLostJob(f, undefined))
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
