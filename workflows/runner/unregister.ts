/**
 * Unregisters a runner that is to stop or has ended, until its pod may be deleted. Carries out the
 * decisions of unregisterTable.ts.
 */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { ParentClosePolicy, condition, startChild } from '@temporalio/workflow';
import {
  DEREGISTRATION_WORKFLOW,
  type DeregistrationInput,
  type RunnerInput,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { callUnless, ciActivities } from '../shared/activityProxies.ts';
import { continueAsNewIfSuggested } from './continueAsNew.ts';
import { deadlineCancellation } from './jobDeadline.ts';
import { onRejectedAsBusy } from './runnerActivity.ts';
import type { RunnerState } from './state.ts';
import { nextCheckMs } from './startupDecision.ts';
import { refreshPod } from './podWaits.ts';
import {
  FORCE_KILL_TIMEOUT_MS,
  beginTearDown,
  stopOverdueMs,
  stopPod,
  tearDownUnless,
} from './tearDown.ts';
import {
  applyEvent,
  initialProgress,
  type UnregistrationProgress,
  type WaitKind,
  type ObservedFacts,
  type UnregistrationFacts,
  type UnregistrationEvent,
} from './unregisterFacts.ts';
import { decideUnregistration, type UnregistrationAction } from './unregisterTable.ts';

/** Result of the unregistration of one runner. */
export interface Unregistered extends Pick<
  UnregistrationProgress,
  'removal' | 'removedWhileRunning'
> {
  /** Whether Holdfast itself requested the deletion of the pod. */
  readonly stoppedByHoldfast: boolean;
  /** Id of the workflow that continues to remove the registration. */
  readonly deregistrationWorkflowId?: string;
}

/** Maximum time for removing the registration of a runner that may never have had one (ms). */
const UNKNOWN_RUNNER_MS = 2 * 60_000;

/**
 * Unregisters the current runner. Returns only when its registration is proven absent or has been
 * handed off, and its pod may be deleted.
 */
export async function unregister(state: RunnerState, input: RunnerInput): Promise<Unregistered> {
  // A plain command has no registration.
  let heard =
    state.heard ?? initialProgress(state.spec.scope === undefined ? Date.now() : undefined);
  for (;;) {
    state.heard = heard;
    await continueAsNewIfSuggested(state, input);
    const facts: UnregistrationFacts = { ...currentFacts(state), ...heard };
    const action = decideUnregistration(facts);
    state.setWaitReason(action.reason);
    if (
      action.kind === 'tearDown' &&
      (action.unlessStarted ?? action.unlessBusy) === true &&
      !(await tearDownUnless(
        state,
        action,
        () => action.unlessBusy === true && factsChanged(state, facts),
      ))
    ) {
      heard = applyEvent(facts, { kind: 'changed' });
    } else if (action.kind === 'tearDown' || action.kind === 'handOff') {
      const { removal, removedWhileRunning, stopped } = heard;
      const deregistration = action.kind === 'handOff' ? await handOff(state) : undefined;
      return {
        ...omitUndefined({ removal, deregistrationWorkflowId: deregistration }),
        removedWhileRunning,
        stoppedByHoldfast: stopped !== undefined,
      };
    } else {
      heard = applyEvent(facts, await execute(state, action, facts));
    }
  }
}

/** Returns the facts for the decision table, from the current state. */
export function currentFacts(state: RunnerState): ObservedFacts {
  const { runner, cancel, spec } = state;
  const { pod } = runner;
  return {
    ephemeral: spec.ephemeral,
    started: pod?.startedAt !== undefined,
    ended: pod === undefined || pod.ended || runner.ended !== undefined,
    hadJob: state.hadJob,
    terminationRequested: pod?.terminating === true || pod?.disruptionReason !== undefined,
    observedActivity: state.observedActivity(),
    wasRegistered: runner.id !== undefined || runner.online,
    registrationExpired:
      pod?.startedAt !== undefined && state.sinceStartedMs >= spec.timeouts.registrationMs,
    ...omitUndefined({
      exitCode: pod?.exit?.code,
      endUnobserved: pod === undefined ? runner.podInDoubt : pod.endUnobserved,
      idleInDoubt: state.isIdleInDoubt && !spec.ephemeral ? (true as const) : undefined,
      removalEndsJob: spec.removalEndsJob,
      outlivesRegistration: spec.outlivesRegistration,
      stop: cancel?.mode === 'drain' ? undefined : cancel?.mode,
    }),
  };
}

/** Whether a fact has changed that the decision table must evaluate. */
export function factsChanged(state: RunnerState, facts: UnregistrationFacts): boolean {
  return mustInterruptStop(state, facts) || state.observedActivity() !== facts.observedActivity;
}

/** Whether a fact has changed that must interrupt a stop. */
export function mustInterruptStop(state: RunnerState, facts: UnregistrationFacts): boolean {
  const { ended, stop } = currentFacts(state);
  return ended !== facts.ended || stop !== facts.stop;
}

async function execute(
  state: RunnerState,
  action: Exclude<UnregistrationAction, { kind: 'tearDown' | 'handOff' }>,
  facts: UnregistrationFacts,
): Promise<UnregistrationEvent> {
  switch (action.kind) {
    case 'remove':
      return await removeRegistration(state, action, facts);
    case 'stopPod':
      return (await stopPod(state, action, () => mustInterruptStop(state, facts)))
        ? { kind: 'stopped', mode: action.mode }
        : { kind: 'changed' };
    case 'refreshPod':
      await refreshPod(state, 'Get the pod');
      return { kind: 'podRefreshed' };
    case 'wait':
      return await wait(state, action, facts);
  }
}

/**
 * Returns the limits of a removal. `withinMs`, for an ended runner: after this time the removal is
 * handed off. `responseTimeoutMs`, for a runner that is to be stopped: after this time it is stopped
 * without a response. A runner that may finish its job has no limit here.
 */
export function removalLimits(
  { runner, spec }: RunnerState,
  { ended, stop }: Pick<UnregistrationFacts, 'ended' | 'stop'>,
): { readonly withinMs?: number; readonly responseTimeoutMs?: number } {
  if (ended)
    return {
      withinMs: runner.pod === undefined ? UNKNOWN_RUNNER_MS : spec.timeouts.unregistrationMs,
    };
  return stop === undefined ? {} : { responseTimeoutMs: spec.intervals.stopResponseTimeoutMs };
}

/**
 * Returns how long the removal of a runner that may finish its job is retried (ms): until the
 * deadline of that job. A runner that reports no job, and whose removal is retried while it is
 * busy, may have started one since the removal began.
 */
export function removalJobMs(
  { spec, runner }: RunnerState,
  { ended, stop }: Pick<UnregistrationFacts, 'ended' | 'stop'>,
  onBusy: 'retry' | 'return',
): number | undefined {
  if (ended || stop !== undefined) return undefined;
  if (runner.jobDeadline === undefined)
    return onBusy === 'retry' ? spec.timeouts.jobTimeoutMs : undefined;
  return Math.max(1, runner.jobDeadline - Date.now());
}

/** Returns the registration of the runner, with a mark if it is in a scale set. */
function registrationToRemove({ registration: runner, spec }: RunnerState): {
  readonly runner: RunnerState['registration'];
  readonly inScaleSet?: true;
} {
  return spec.scaleSet === undefined ? { runner } : { runner, inScaleSet: true };
}

/** Returns the event of a removal without a result in time. Stops a job that has had its time. */
function removalTimedOut(state: RunnerState, isStopped: boolean): UnregistrationEvent {
  if (isStopped) return { kind: 'expiredWait', wait: 'stopResponse' };
  // The deadline may have been extended meanwhile.
  if (Date.now() >= (state.runner.jobDeadline ?? 0)) stopForTimeout(state);
  return { kind: 'removalCancelled' };
}

async function removeRegistration(
  state: RunnerState,
  { onBusy, reason }: Extract<UnregistrationAction, { kind: 'remove' }>,
  facts: UnregistrationFacts,
): Promise<UnregistrationEvent> {
  const { spec, runner, scope } = state;
  state.enterPhase(facts.ended ? 'Unregistering' : 'Draining');
  // The pod and Secret of an ended runner are deleted whatever the CI server responds, and even
  // while it does not respond.
  if (facts.ended) void beginTearDown(state);
  const { responseTimeoutMs, ...within } = removalLimits(state, facts);
  const jobMs = removalJobMs(state, facts, onBusy);
  const limitMs = responseTimeoutMs ?? jobMs;
  state.setWaitReason(reason, limitMs === undefined ? undefined : Date.now() + limitMs);
  const options = {
    summary: onBusy === 'retry' ? 'Unregister (retried while busy)' : 'Unregister',
    ...within,
  };
  const input = {
    scope,
    credential: spec.credential,
    ...registrationToRemove(state),
    onBusy,
    busyRetryMs: spec.intervals.busyRetryMs,
    credentialsRetryMs: spec.intervals.credentialsRetryMs,
  };
  let isOutdated = false;
  const called = await callUnless(
    // A short job can begin and end before the call has returned.
    () => (isOutdated ||= factsChanged(state, facts)),
    async () =>
      await ciActivities(spec.credential, scope, 'remove', options).removeRegistration(input),
    { timeoutMs: limitMs, abandon: () => state.isForced },
  );
  if (called.kind === 'failed') return { kind: 'failed' };
  if (called.kind === 'interrupted') {
    if (isOutdated || factsChanged(state, facts)) return { kind: 'removalCancelled' };
    return removalTimedOut(state, responseTimeoutMs !== undefined);
  }
  const { result, afterRetry = false, attempts, runnerId } = called.value;
  state.unregisterAttempts += attempts;
  if (runnerId !== undefined) runner.id = runnerId;
  // The runner came online and took a job after all.
  if (result === 'busy' && !facts.ended) onRejectedAsBusy(state);
  return {
    kind: 'answered',
    answer: result,
    retried: afterRetry,
    atMs: Date.now(),
    listMaxAgeMs: spec.intervals.listMaxAgeMs,
  };
}

async function wait(
  state: RunnerState,
  { until, reason }: Extract<UnregistrationAction, { kind: 'wait' }>,
  facts: UnregistrationFacts,
): Promise<UnregistrationEvent> {
  const { runner } = state;
  state.enterPhase('Draining');
  const timeoutMs = Math.max(1, waitMs(state, until, facts));
  state.setWaitReason(reason, Date.now() + timeoutMs);
  const summary = until === 'busyCheck' ? `${reason}: safety re-check` : reason;
  const deadline = runner.jobDeadline ?? Number.POSITIVE_INFINITY;
  const isOver = () =>
    factsChanged(state, facts) || (runner.jobDeadline ?? Number.POSITIVE_INFINITY) < deadline;
  // The condition that ended the wait may no longer hold, but the wait did not time out.
  if (await condition(isOver, timeoutMs, { summary: summary.slice(0, 150) }))
    return { kind: 'changed' };
  if (runner.jobDeadline !== undefined && Date.now() >= jobEndsAtMs(state, facts.absentSinceMs))
    stopForTimeout(state);
  return { kind: 'expiredWait', wait: until };
}

function stopForTimeout(state: RunnerState): void {
  state.requestCancel(deadlineCancellation(state));
}

/**
 * Returns the time by which the job has to end (ms since the epoch). No job starts after the
 * registration was removed, so a runner that becomes idle and busy again gets no additional time.
 */
function jobEndsAtMs({ spec, runner }: RunnerState, absentSinceMs: number | undefined): number {
  const deadline = runner.jobDeadline ?? Date.now() + spec.timeouts.jobTimeoutMs;
  return absentSinceMs === undefined || spec.scope === undefined
    ? deadline
    : Math.min(deadline, absentSinceMs + spec.pod.jobTimeoutCapMs);
}

/** Returns how long each wait may still take (ms). */
export function waitMs(
  state: RunnerState,
  until: WaitKind,
  { absentSinceMs, stopped, unlistedSinceMs }: UnregistrationFacts,
): number {
  const { spec, runner } = state;
  const { intervals, timeouts } = spec;
  const nowMs = Date.now();
  const sinceProofMs = nowMs - (absentSinceMs ?? nowMs);
  const jobMs = jobEndsAtMs(state, absentSinceMs) - nowMs;
  switch (until) {
    case 'stopResponse':
      return intervals.stopResponseTimeoutMs;
    case 'idleConfirmed':
      return intervals.idleConfirmationMs - sinceProofMs;
    case 'settled':
      // A runner that was never online cannot have a job for long. A runner that was online may
      // have taken a job that nothing reports. If it continues without a registration, the CI server
      // no longer accepts the result of that job.
      return (
        (runner.online && spec.outlivesRegistration !== true
          ? timeouts.jobTimeoutMs
          : intervals.removalGraceMs) - sinceProofMs
      );
    case 'terminated':
      return stopped === 'force' ? FORCE_KILL_TIMEOUT_MS : stopOverdueMs(state);
    case 'jobDeadline':
      return jobMs;
    case 'busyCheck':
      return Math.min(intervals.busyCheckMs, jobMs);
    case 'absentCheck':
      return nextCheckMs(state.sinceStartedMs, timeouts.registrationMs, intervals.absentCheckMs);
    case 'listRecheck':
      return (unlistedSinceMs ?? nowMs) + intervals.listMaxAgeMs - nowMs;
    case 'credentialsRetry':
      return intervals.credentialsRetryMs;
  }
}

/**
 * Hands off the registration to a workflow of its own. The start is awaited in a scope that
 * cancellation does not reach; from then on that workflow removes the registration.
 */
async function handOff({ spec, runnerName, scope, registration }: RunnerState): Promise<string> {
  const input: DeregistrationInput = {
    [scope.kind]: scope.name,
    credential: spec.credential,
    runner: registration,
    ...(spec.scaleSet === undefined ? {} : { inScaleSet: true }),
    reason: 'the runner ended and the CI server did not remove its registration yet',
    initialRetryInterval: `${spec.intervals.busyRetryMs}ms`,
  };
  const workflowId = `deregistration-${runnerName}`;
  try {
    await startChild(DEREGISTRATION_WORKFLOW, {
      workflowId,
      args: [input],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: `remove the registration of ${runnerName}`,
    });
  } catch (error) {
    // The workflow exists already (this workflow was reset, or a user started it).
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  return workflowId;
}
