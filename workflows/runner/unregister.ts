/** From "this runner shall go, or has ended" to "unregistered, and its pod may go": carries out what unregisterTable.ts decides. */
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

/** How the unregistration of one runner went. */
export interface Unregistered extends Pick<
  UnregistrationProgress,
  'removal' | 'removedWhileRunning'
> {
  /** Holdfast itself asked for the pod's deletion. */
  readonly stoppedByHoldfast: boolean;
  /** Id of the workflow that goes on removing the registration. */
  readonly deregistrationWorkflowId?: string;
}

/** How long the CI server is asked for the registration of a runner that may never have had one. */
const UNKNOWN_RUNNER_MS = 2 * 60_000;

/** Unregisters the life's present runner. Ends only when its registration is proven absent or handed on, and its pod may go. */
export async function unregister(state: RunnerState, input: RunnerInput): Promise<Unregistered> {
  // Nobody had to know a plain command.
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

/** What the table goes by, of what the life knows now. */
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
      pod?.startedAt !== undefined &&
      Date.now() >= Date.parse(pod.startedAt) + spec.timeouts.registrationMs,
    ...omitUndefined({
      exitCode: pod?.exit?.code,
      endUnobserved: pod === undefined ? runner.podInDoubt : pod.endUnobserved,
      idleInDoubt: state.isIdleInDoubt && !spec.ephemeral ? (true as const) : undefined,
      removalEndsJob: spec.removalEndsJob,
      stop: cancel?.mode === 'drain' ? undefined : cancel?.mode,
    }),
  };
}

/** Does anything hold now that the table must hear of? */
export function factsChanged(state: RunnerState, facts: UnregistrationFacts): boolean {
  return mustInterruptStop(state, facts) || state.observedActivity() !== facts.observedActivity;
}

/** Does anything hold now that a stop must not wait for? */
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
    case 'look':
      await refreshPod(state, 'the pod as it is now');
      return { kind: 'looked' };
    case 'wait':
      return await wait(state, action, facts);
  }
}

/**
 * Returns how long a removal may take. `withinMs`: of an ended runner, after which the removal is handed off. `patienceMs`: of a runner that
 * is to be stopped, after which it is stopped without an answer. A runner that may finish its job is asked about for as long as it runs.
 */
export function removalLimits(
  { runner, spec }: RunnerState,
  { ended, stop }: Pick<UnregistrationFacts, 'ended' | 'stop'>,
): { readonly withinMs?: number; readonly patienceMs?: number } {
  if (ended)
    return {
      withinMs: runner.pod === undefined ? UNKNOWN_RUNNER_MS : spec.timeouts.unregistrationMs,
    };
  return stop === undefined ? {} : { patienceMs: spec.intervals.stopResponseTimeoutMs };
}

/**
 * Returns how long a runner that may finish its job is asked about (ms): until that job's deadline. One that says nothing of a job, and
 * is asked about again while it is busy, may have had one since the removal began.
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

async function removeRegistration(
  state: RunnerState,
  { onBusy, reason }: Extract<UnregistrationAction, { kind: 'remove' }>,
  facts: UnregistrationFacts,
): Promise<UnregistrationEvent> {
  const { spec, runner, scope } = state;
  state.enterPhase(facts.ended ? 'Unregistering' : 'Draining');
  // An ended runner's pod and Secret go whatever the CI server answers, and even while it does not.
  if (facts.ended) void beginTearDown(state);
  const { patienceMs, ...within } = removalLimits(state, facts);
  const jobMs = removalJobMs(state, facts, onBusy);
  const limitMs = patienceMs ?? jobMs;
  state.setWaitReason(reason, limitMs === undefined ? undefined : Date.now() + limitMs);
  const options = {
    summary: onBusy === 'retry' ? 'unregister (again while it is busy)' : 'unregister',
    ...within,
  };
  const input = {
    scope,
    credential: spec.credential,
    runner: state.registration,
    onBusy,
    busyRetryMs: spec.intervals.busyRetryMs,
    credentialsRetryMs: spec.intervals.credentialsRetryMs,
  };
  const called = await callUnless(
    () => factsChanged(state, facts),
    async () =>
      await ciActivities(spec.credential, scope, 'remove', options).removeRegistration(input),
    limitMs,
  );
  if (called.kind === 'failed') return { kind: 'failed' };
  if (called.kind === 'interrupted') {
    if (factsChanged(state, facts)) return { kind: 'calledOff' };
    if (patienceMs !== undefined) return { kind: 'expiredWait', wait: 'patience' };
    // The deadline may have been moved meanwhile.
    const untilMs = runner.jobDeadline ?? 0;
    if (Date.now() >= untilMs) stopForTimeout(state);
    return { kind: 'calledOff' };
  }
  const { result, afterRetry = false, attempts, runnerId } = called.value;
  state.unregisterAttempts += attempts;
  if (runnerId !== undefined) runner.id = runnerId;
  // It came online and took a job after all.
  if (result === 'busy' && !facts.ended) state.calledBusy();
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
  // What woke it may be over by now: it was no timeout all the same.
  if (
    await condition(() => factsChanged(state, facts), timeoutMs, { summary: summary.slice(0, 150) })
  )
    return { kind: 'changed' };
  if (runner.jobDeadline !== undefined && Date.now() >= jobEndsAtMs(state, facts.absentSinceMs))
    stopForTimeout(state);
  return { kind: 'expiredWait', wait: until };
}

function stopForTimeout(state: RunnerState): void {
  state.requestCancel({ mode: 'stop', reason: state.timeoutReason(), by: 'run_timeout' });
}

/** When its job has to be over (ms since the epoch). None begins once it is unregistered: a runner that turns idle and busy again gains nothing. */
function jobEndsAtMs({ spec, runner }: RunnerState, absentSinceMs: number | undefined): number {
  const deadline = runner.jobDeadline ?? Date.now() + spec.timeouts.jobTimeoutMs;
  return absentSinceMs === undefined || spec.scope === undefined
    ? deadline
    : Math.min(deadline, absentSinceMs + spec.pod.jobTimeoutCapMs);
}

/** How long each wait may take from now on, in ms. */
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
    case 'patience':
      return intervals.stopResponseTimeoutMs;
    case 'idleConfirmed':
      return intervals.idleConfirmationMs - sinceProofMs;
    case 'settled':
      // A runner that was never online cannot hold a job for long; one that was may have taken a job that nothing tells of.
      return (runner.online ? timeouts.jobTimeoutMs : intervals.removalGraceMs) - sinceProofMs;
    case 'terminated':
      return stopped === 'force' ? FORCE_KILL_TIMEOUT_MS : stopOverdueMs(state);
    case 'jobDeadline':
      return jobMs;
    case 'busyCheck':
      return Math.min(intervals.busyCheckMs, jobMs);
    case 'absentCheck':
      return nextCheckMs(
        nowMs - Date.parse(runner.pod?.startedAt ?? ''),
        timeouts.registrationMs,
        intervals.absentCheckMs,
      );
    case 'listRecheck':
      return (unlistedSinceMs ?? nowMs) + intervals.listMaxAgeMs - nowMs;
    case 'credentialsRetry':
      return intervals.credentialsRetryMs;
  }
}

/** The start is awaited where no cancellation reaches it: from then on somebody else sees to the registration. */
async function handOff({ spec, runnerName, scope, registration }: RunnerState): Promise<string> {
  const input: DeregistrationInput = {
    [scope.kind]: scope.name,
    credential: spec.credential,
    runner: registration,
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
    // Somebody is at it already (this workflow was reset, or a person started it).
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  return workflowId;
}
