/** From "this runner shall go, or has ended" to "unregistered, and its pod may go": carries out what unregisterTable.ts decides. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { ParentClosePolicy, condition, startChild } from '@temporalio/workflow';
import {
  DEREGISTRATION_WORKFLOW,
  type DeregistrationInput,
  type RunnerInput,
} from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { callUnless, ciCalls } from '../shared/activityProxies.ts';
import { continueWhenLong } from './continueAsNew.ts';
import type { RunnerLife } from './state.ts';
import { nextLookMs } from './startupDecision.ts';
import { lookAtPod } from './podWaits.ts';
import {
  FORCED_OVERDUE_MS,
  beginTearDown,
  stopOverdueMs,
  stopPod,
  tearDownUnstarted,
} from './tearDown.ts';
import {
  hear,
  nothingHeard,
  type HeardFacts,
  type OwnWait,
  type SeenFacts,
  type UnregistrationFacts,
  type UnregistrationNews,
} from './unregisterFacts.ts';
import { decideUnregistration, type UnregistrationAction } from './unregisterTable.ts';

/** How the unregistration of one runner went. */
export interface Unregistered extends Pick<HeardFacts, 'removal' | 'removedAlive'> {
  /** Holdfast itself asked for the pod's deletion. */
  readonly stoppedByUs: boolean;
  /** Id of the workflow that goes on removing the registration. */
  readonly deregistration?: string;
}

/** How long the CI server is asked for the registration of a runner that may never have had one. */
const UNKNOWN_RUNNER_MS = 2 * 60_000;

/** Unregisters the life's present runner. Ends only when its registration is proven absent or handed on, and its pod may go. */
export async function unregister(life: RunnerLife, input: RunnerInput): Promise<Unregistered> {
  // Nobody had to know a plain command.
  let heard = life.heard ?? nothingHeard(life.spec.scope === undefined ? Date.now() : undefined);
  for (;;) {
    life.heard = heard;
    await continueWhenLong(life, input);
    const facts: UnregistrationFacts = { ...seenNow(life), ...heard };
    const action = decideUnregistration(facts);
    life.waitFor(action.why);
    if (
      action.kind === 'tearDown' &&
      action.unlessStarted === true &&
      !(await tearDownUnstarted(life))
    ) {
      heard = hear(facts, { kind: 'changed' });
    } else if (action.kind === 'tearDown' || action.kind === 'handOff') {
      const { removal, removedAlive, stopped } = heard;
      const deregistration = action.kind === 'handOff' ? await handOff(life) : undefined;
      return {
        ...defined({ removal, deregistration }),
        removedAlive,
        stoppedByUs: stopped !== undefined,
      };
    } else {
      heard = hear(facts, await carryOut(life, action, facts));
    }
  }
}

/** What the table goes by, of what the life knows now. */
export function seenNow(life: RunnerLife): SeenFacts {
  const { runner, cancel, spec } = life;
  const { pod } = runner;
  return {
    ephemeral: spec.ephemeral,
    started: pod?.startedAt !== undefined,
    ended: pod === undefined || pod.ended || runner.ended !== undefined,
    sawJob: life.sawJob,
    toldToGo: pod?.terminating === true || pod?.disruption !== undefined,
    ownSignal: life.ownSignal(),
    heldId: runner.id !== undefined || runner.online,
    registrationOver:
      pod?.startedAt !== undefined &&
      Date.now() >= Date.parse(pod.startedAt) + spec.timeouts.registrationMs,
    ...defined({
      exitCode: pod?.exit?.code,
      unseenEnd: pod?.unseenEnd,
      stop: cancel?.mode === 'drain' ? undefined : cancel?.mode,
    }),
  };
}

/** Does anything hold now that the table must hear of? */
export function hasChanged(life: RunnerLife, facts: UnregistrationFacts): boolean {
  return mustGoOn(life, facts) || life.ownSignal() !== facts.ownSignal;
}

/** Does anything hold now that a stop must not wait for? */
export function mustGoOn(life: RunnerLife, facts: UnregistrationFacts): boolean {
  const { ended, stop } = seenNow(life);
  return ended !== facts.ended || stop !== facts.stop;
}

async function carryOut(
  life: RunnerLife,
  action: Exclude<UnregistrationAction, { kind: 'tearDown' | 'handOff' }>,
  facts: UnregistrationFacts,
): Promise<UnregistrationNews> {
  switch (action.kind) {
    case 'remove':
      return await remove(life, action.onBusy, facts);
    case 'stopPod':
      return (await stopPod(life, action, () => mustGoOn(life, facts)))
        ? { kind: 'stopped', mode: action.mode }
        : { kind: 'changed' };
    case 'look':
      await lookAtPod(life, 'the pod as it is now');
      return { kind: 'looked' };
    case 'wait':
      return await wait(life, action, facts);
  }
}

async function remove(
  life: RunnerLife,
  onBusy: 'retry' | 'return',
  facts: UnregistrationFacts,
): Promise<UnregistrationNews> {
  const { spec, runner, scope } = life;
  life.enter(facts.ended ? 'Unregistering' : 'Draining');
  // An ended runner's pod and Secret go whatever the CI server answers, and even while it does not.
  if (facts.ended) void beginTearDown(life);
  const endedMs = runner.pod === undefined ? UNKNOWN_RUNNER_MS : spec.timeouts.unregistrationMs;
  const options = {
    summary: onBusy === 'retry' ? 'unregister (again while it is busy)' : 'unregister',
    ...(facts.ended ? { withinMs: endedMs } : {}),
  };
  const input = {
    scope,
    credential: spec.credential,
    runner: life.registration,
    onBusy,
    busyRetryMs: spec.intervals.busyRetryMs,
    credentialsRetryMs: spec.intervals.credentialsRetryMs,
  };
  const called = await callUnless(
    () => hasChanged(life, facts),
    async () => await ciCalls(spec.credential, scope, 'remove', options).removeRegistration(input),
    facts.stop !== undefined && !facts.ended ? spec.intervals.stopPatienceMs : undefined,
  );
  if (called.kind === 'failed') return { kind: 'failed' };
  if (called.kind === 'interrupted')
    return hasChanged(life, facts)
      ? { kind: 'calledOff' }
      : { kind: 'outOfTime', wait: 'patience' };
  const { answer, retried = false, attempts, runnerId } = called.value;
  life.unregisterAttempts += attempts;
  if (runnerId !== undefined) runner.id = runnerId;
  // It came online and took a job after all.
  if (answer === 'busy' && !facts.ended) Object.assign(runner, { online: true, sawJob: true });
  return {
    kind: 'answered',
    answer,
    retried,
    atMs: Date.now(),
    listAgeMs: spec.intervals.listAgeMs,
  };
}

async function wait(
  life: RunnerLife,
  { until, why }: Extract<UnregistrationAction, { kind: 'wait' }>,
  facts: UnregistrationFacts,
): Promise<UnregistrationNews> {
  const { runner } = life;
  life.enter('Draining');
  const timeoutMs = Math.max(1, waitMs(life, until, facts));
  life.waitFor(why, Date.now() + timeoutMs);
  const summary = until === 'busyRecheck' ? `${why}: safety re-check` : why;
  // What woke it may be over by now: it was no timeout all the same.
  if (await condition(() => hasChanged(life, facts), timeoutMs, { summary: summary.slice(0, 150) }))
    return { kind: 'changed' };
  if (runner.jobDeadline !== undefined && Date.now() >= jobEndsAtMs(life, facts.provenAtMs)) {
    life.requestCancel({ mode: 'stop', reason: life.whyOutOfTime(), by: 'run_timeout' });
  }
  return { kind: 'outOfTime', wait: until };
}

/** When its job has to be over (ms since the epoch). None begins once it is unregistered: a runner that turns idle and busy again gains nothing. */
function jobEndsAtMs({ spec, runner }: RunnerLife, provenAtMs: number | undefined): number {
  const deadline = runner.jobDeadline ?? Date.now() + spec.timeouts.jobTimeoutMs;
  return provenAtMs === undefined || spec.scope === undefined
    ? deadline
    : Math.min(deadline, provenAtMs + spec.jobTimeoutCapMs);
}

/** How long each wait may take from now on, in ms. */
export function waitMs(
  life: RunnerLife,
  until: OwnWait,
  { provenAtMs, stopped, unlistedSinceMs }: UnregistrationFacts,
): number {
  const { spec, runner } = life;
  const { intervals, timeouts } = spec;
  const nowMs = Date.now();
  const sinceProofMs = nowMs - (provenAtMs ?? nowMs);
  const jobMs = jobEndsAtMs(life, provenAtMs) - nowMs;
  switch (until) {
    case 'patience':
      return intervals.stopPatienceMs;
    case 'idleConfirmed':
      return intervals.idleConfirmMs - sinceProofMs;
    case 'settled':
      // A runner that was never online cannot hold a job for long; one that was may have taken a job that nothing tells of.
      return (runner.online ? timeouts.jobTimeoutMs : intervals.removalSettleMs) - sinceProofMs;
    case 'terminated':
      return stopped === 'force' ? FORCED_OVERDUE_MS : stopOverdueMs(life);
    case 'jobDeadline':
      return jobMs;
    case 'busyRecheck':
      return Math.min(intervals.busyRecheckMs, jobMs);
    case 'absentRecheck':
      return nextLookMs(
        nowMs - Date.parse(runner.pod?.startedAt ?? ''),
        timeouts.registrationMs,
        intervals.absentRecheckMs,
      );
    case 'listRecheck':
      return (unlistedSinceMs ?? nowMs) + intervals.listAgeMs - nowMs;
    case 'credentialsRetry':
      return intervals.credentialsRetryMs;
  }
}

/** The start is awaited where no cancellation reaches it: from then on somebody else sees to the registration. */
async function handOff({ spec, runnerName, scope, registration }: RunnerLife): Promise<string> {
  const input: DeregistrationInput = {
    [scope.kind]: scope.name,
    credential: spec.credential,
    runner: registration,
    reason: 'the runner ended and the CI server did not remove its registration yet',
    firstRetry: `${spec.intervals.busyRetryMs}ms`,
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
