/** The invariants of verdicts: whether a verdict matches what happened to the runner. */
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { VerdictDecision } from '../../workflows/runner/verdict.ts';
import {
  isCommand,
  isDone,
  isEphemeral,
  isLost,
  isStatic,
  lacksSupervisor,
  type State,
} from './state.ts';
import type { WorkflowModel } from './workflowModel.ts';

/** A verdict, and the state that it must match. */
interface Judged {
  readonly s: State;
  readonly workflow: WorkflowModel;
  readonly decision: VerdictDecision;
  /** The outcome, or `replaced`. */
  readonly outcome: string;
  readonly cause: string | undefined;
  /** Returns the message of a violation. */
  readonly wrong: (why: string) => string;
}

/** Checks the verdict of a runner that has ended. */
export function checkVerdict(s: State, workflow: WorkflowModel): string | undefined {
  const decision = workflow.verdict(s);
  const { cause } = decision;
  const outcome = decision.kind === 'replace' ? 'replaced' : decision.outcome;
  const name = `${outcome}${cause === undefined ? '' : `/${cause}`}`;
  const wrong = (why: string): string => `the verdict ${name} is wrong: ${why}`;
  const judged: Judged = { s, workflow, decision, outcome, cause, wrong };
  const { cancel: latest, fixedCancel } = workflow.knowledge(s);
  const cancel = fixedCancel === undefined ? latest : fixedCancel.cancel;
  // A cancellation after the end is too late, except that it prevents a replacement.
  if (
    fixedCancel !== undefined &&
    cancel === undefined &&
    s.stage === 'completed' &&
    isByLateCancellation(decision, latest)
  )
    return checkLateCancellation(judged);
  if (cancel !== undefined && cancel.by !== 'drain') return checkCancelled(judged, cancel);
  if (outcome === 'aborted') return wrong('it was not cancelled');
  if (cancel !== undefined) return checkDrained(judged);
  if (s.failure !== 'none') return checkFailedStart(judged);
  return checkUndisturbed(judged);
}

/** Whether the verdict follows a cancellation that came after the end of the runner. */
function isByLateCancellation(
  decision: VerdictDecision,
  cancel: Cancellation | undefined,
): boolean {
  if (decision.kind !== 'end' || cancel === undefined) return false;
  return cancel.by === 'drain' || (cancel.mode === 'drain' && decision.outcome === 'errored')
    ? decision.message.includes('drain')
    : decision.outcome === 'aborted' && decision.cause === cancel.by;
}

function checkLateCancellation({ s, wrong }: Judged): string | undefined {
  return isDone(s) && !isStatic(s) && s.exit === '0' && !isDeletedByOthers(s)
    ? wrong('its job had completed before the cancellation')
    : undefined;
}

function checkCancelled(
  { s, workflow, outcome, cause, wrong }: Judged,
  cancel: Cancellation,
): string | undefined {
  // A runner that crashed lost its job by itself.
  const crashed = s.exit === '1' || s.exit === '137, out of memory';
  const isLostInDrain = cancel.mode === 'drain' && isLost(s) && !crashed;
  if (outcome === 'aborted' && cause === cancel.by)
    return isLostInDrain && isLossKnown(s, workflow)
      ? wrong('its job was lost in the drain')
      : undefined;
  // The latest report of a job can be outdated. Without a supervisor, or without its termination
  // message, nothing may report whether the job was lost.
  const { pod, jobs } = workflow.knowledge(s).runner;
  const hasNoRecord = lacksSupervisor(s) || pod?.exit?.record === undefined;
  const isInDoubt =
    (isEphemeral(s) && hasNoRecord) || jobs.running !== undefined || isJobReported(s, workflow);
  return (isLostInDrain || isInDoubt) && cancel.mode === 'drain' && outcome === 'errored'
    ? undefined
    : wrong(`it was cancelled (${cancel.by})`);
}

function checkDrained({ s, workflow, outcome, wrong }: Judged): string | undefined {
  if (outcome === 'succeeded' && isLost(s) && isLossKnown(s, workflow))
    return wrong('its job was lost in the drain');
  return outcome === 'replaced' ? wrong('it was drained') : undefined;
}

function checkFailedStart({ s, outcome, cause, wrong }: Judged): string | undefined {
  const isExpected = outcome === 'errored' && (cause ?? 'provisioning') === s.failure;
  return isDone(s) || isLost(s) || isExpected
    ? undefined
    : wrong(`it did not start (${s.failure})`);
}

/** Checks the verdict of a runner that started and was not cancelled. */
function checkUndisturbed(judged: Judged): string | undefined {
  return checkJob(judged) ?? checkExit(judged);
}

function checkJob({ s, workflow, outcome, wrong }: Judged): string | undefined {
  const { onEviction } = workflow.spec(s.setup);
  if (outcome === 'succeeded' && !isDone(s)) return wrong('no job completed');
  if (outcome === 'succeeded' && isStatic(s))
    return wrong('a static runner does not end by itself');
  if (outcome === 'replaced' && isLost(s) && isJobReported(s, workflow) && onEviction === 'fail')
    return wrong('its job was lost, and could run twice');
  if (
    outcome === 'errored' &&
    isLost(s) &&
    isDeletedByOthers(s) &&
    wasObserved(s, workflow) &&
    onEviction === 'replace'
  )
    return wrong('the runner had to be replaced');
  return undefined;
}

function checkExit({ s, workflow, outcome, cause, wrong }: Judged): string | undefined {
  const { runner, neverStartedInARow } = workflow.knowledge(s);
  const exit = runner.pod?.exit;
  if (exit?.oomKilled === true && (outcome !== 'failed' || cause !== 'oom_killed'))
    return wrong('it was out of memory');
  if (!wasObserved(s, workflow) && s.pod === 'gone') {
    const expected = neverStartedInARow >= 3 ? 'errored' : 'replaced';
    return outcome === expected
      ? undefined
      : wrong(`its container never started, and ${neverStartedInARow} before it did not either`);
  }
  if (exit?.code === 1 && !isDeletedByOthers(s) && outcome !== 'failed')
    return wrong('it exited with 1');
  const isByItself = exit?.code === 0 && !s.interrupted && !isDeletedByOthers(s);
  if (isByItself && isDone(s) && runner.hadJob && !isStatic(s) && outcome !== 'succeeded')
    return wrong('it completed its job, and exited with 0');
  if (isByItself && !isDone(s) && outcome !== 'errored')
    return wrong('it exited with 0 without a job');
  const isLostWhileIdle = s.job === 'none' && exit === undefined && !isCommand(s);
  // A missed probe shows an idle runner as busy. If it vanishes then, it counts as lost with a job.
  const isInDoubt = outcome === 'errored' && isJobReported(s, workflow);
  return isLostWhileIdle && outcome !== 'replaced' && !isInDoubt
    ? wrong('it was lost while idle')
    : undefined;
}

const isDeletedByOthers = ({ deletedBy }: State): boolean =>
  deletedBy === 'user' || deletedBy === 'eviction';

/** Whether the workflow knows that the container started. */
function wasObserved(s: State, workflow: WorkflowModel): boolean {
  const { pod, hadJob } = workflow.knowledge(s).runner;
  return pod?.startedAt !== undefined || hadJob || isJobReported(s, workflow);
}

/** Whether the workflow knows that a job was lost. The job of a command is the command itself. */
const isLossKnown = (s: State, workflow: WorkflowModel): boolean =>
  isCommand(s)
    ? wasObserved(s, workflow)
    : isJobReported(s, workflow) || workflow.knowledge(s).runner.pod?.exit?.record !== undefined;

/** Whether the pod, an event or the CI server (422) has reported the last job to the workflow. */
function isJobReported(s: State, workflow: WorkflowModel): boolean {
  const { podBusy, jobs } = workflow.knowledge(s).runner;
  // Probes of a terminating pod fail in any case, and a static runner's event may be of another
  // job.
  if (s.probesLate) return jobs.running !== undefined && !isStatic(s);
  // The keys of jobs begin with their ids: 1 and 2. Of a static runner only an event of the last
  // job counts.
  const isLastJob = jobs.running?.key.startsWith(s.job.startsWith('A') ? '1' : '2') === true;
  return (
    podBusy === true ||
    (isStatic(s) ? isLastJob : jobs.running !== undefined) ||
    workflow.progress(s).removal === 'busy'
  );
}
