import {
  ApplicationFailure,
  CancellationScope,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { FAILURE_TYPES, type AwaitRerunInput, type RerunPlan } from '../core/activities/index.ts';
import {
  SEARCH_ATTRIBUTES,
  jobEventSignal,
  type RerunInput,
  type RerunJob,
  type RerunReason,
  type RerunResult,
} from '../core/contract/index.ts';
import { escapeMarkdown } from '../core/domain/displayText.ts';
import { isObject } from '../core/domain/isObject.ts';
import { omitUndefined } from '../core/domain/omitUndefined.ts';
import type { RerunSpec } from '../core/input/rerun.ts';
import {
  FORCE_CANCEL_MS,
  admissionActivities,
  rerunActivities,
  toCallResult,
  type CallResult,
} from './shared/activityProxies.ts';
import { countRerun } from './shared/metrics.ts';

/** Texts of the reasons, for a job called "the job". */
const WHY: Readonly<Record<RerunReason, string>> = {
  job_unknown: 'the CI server lists no job of this runner',
  succeeded: 'it succeeded',
  other_conclusion: 'its conclusion is not that of a lost job',
  other_runner: 'the CI server gave it to another runner',
  failed_itself: 'nothing shows that its runner was the reason of its failure',
  cancelled: 'it was cancelled',
  already_rerun: 'it has been rerun already',
  per_run: 'its attempt is later than rerun.perRun',
  per_day: 'rerun.perDay is reached',
  not_concluded: 'the CI server did not end it in time',
  run_active: 'other jobs of its workflow run did not end in time',
  rejected: 'the CI server rejected the rerun',
  unavailable: 'the CI server did not answer in time',
  interrupted: 'the workflow was cancelled',
};

/**
 * Requests that a job run again after its runner was taken away: waits until the CI server has ended
 * the job, checks that it was lost and not ended by anyone, and requests the rerun once.
 *
 * The workflow id contains the name of the runner, which has one job at a time and is never used
 * again, so a lost job has one such workflow.
 *
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every invalid field
 * @throws ApplicationFailure `ForeignObject` (non-retryable) if the workflow was not started by the
 * workflow of that runner
 */
export async function rerun(input: RerunInput): Promise<RerunResult> {
  const spec = await admissionActivities().admitRerun({ input });
  const { runnerName, set, scope, cause } = spec;
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.scope, value: scope.name },
    ...(set === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.set, value: set }]),
  ]);
  setCurrentDetails(`The job of **${escapeMarkdown(runnerName)}** was lost (${cause}).`);
  const found = spec.job === undefined ? await findJob(spec) : { job: spec.job };
  if (!('job' in found)) return finish(found);
  return finish({ ...(await rerunJob(spec, found.job)), job: found.job });
}

async function findJob({
  scope,
  credential,
  runnerName,
}: RerunSpec): Promise<{ readonly job: RerunJob } | Ended> {
  const called = await toCallResult(
    rerunActivities(credential, scope, 'Find the lost job').findLostJob({
      scope,
      credential,
      runnerName,
    }),
  );
  if (called.kind !== 'done') return failureOf(called);
  const { job } = called.value;
  return job === undefined ? { outcome: 'skipped', reason: 'job_unknown' } : { job };
}

type Ended = Pick<RerunResult, 'outcome' | 'reason' | 'attempt' | 'forceCancelled'> & {
  readonly why?: string;
};

/** Claims the rerun in visibility before it is requested, so that it counts towards `perDay`. */
function claimRerun(): void {
  upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.outcome, value: 'requested' }]);
}

async function rerunJob(spec: RerunSpec, job: RerunJob): Promise<Ended> {
  const { scope, credential, perDay, set } = spec;
  const input = waitInput(spec, job);
  const claim = { perDay, ...omitUndefined({ set }) };
  const wait = rerunActivities(credential, scope, 'Wait for the end of the job');
  let checked = await untilEnded(async () => await wait.awaitRerun(input));
  let cancel: Pick<AwaitRerunInput, 'forceCancelled'> = {};
  if (checked.kind === 'done' && checked.value.kind === 'forceCancel') {
    claimRerun();
    // The history contains the request before it is sent, so that a later check recognizes
    // Holdfast's own cancel.
    const calls = rerunActivities(credential, scope, 'Force-cancel the run', FORCE_CANCEL_MS);
    const sent = await toCallResult(calls.forceCancelRun({ ...input, ...claim }));
    if (sent.kind !== 'done' || sent.value.sent) cancel = { forceCancelled: true };
    const { forceCancelAfterMs: _once, ...rest } = input;
    const next = { ...rest, ...cancel, lostAtMs: Date.now() };
    checked = await untilEnded(async () => await wait.awaitRerun(next));
  }
  const ended = endOf(checked);
  if (ended !== undefined) return { ...ended, ...cancel };
  claimRerun();
  const { requestRerun } = rerunActivities(credential, scope, 'Rerun the job');
  const requested = await toCallResult(requestRerun({ ...input, ...claim, ...cancel }));
  return {
    ...(endOf(requested) ?? { outcome: 'requested', attempt: attemptOf(requested) }),
    ...cancel,
  };
}

function waitInput(
  { scope, credential, runnerName, perRun, stoppedAtMs, recorded, forceCancelAfterMs }: RerunSpec,
  job: RerunJob,
): AwaitRerunInput {
  return {
    scope,
    credential,
    runnerName,
    job,
    perRun,
    recorded: recorded === true,
    lostAtMs: workflowInfo().startTime.getTime(),
    ...omitUndefined({ stoppedAtMs, forceCancelAfterMs }),
  };
}

/** Maximum number of events that end a wait early. Anyone may send signals; a job ends once. */
const MAX_WAKES = 3;

/**
 * Waits for the end of the job. Its `completed` event ends the delay until the next check, which
 * then reads the job again. Without the event, the checks find the end.
 */
async function untilEnded(call: () => Promise<RerunPlan>): Promise<CallResult<RerunPlan>> {
  for (let wakes = 0; ; wakes++) {
    const wait = new CancellationScope();
    let isWoken = false;
    setHandler(jobEventSignal, (event: unknown) => {
      if (wakes === MAX_WAKES || !isObject(event) || event['action'] !== 'completed') return;
      isWoken = true;
      wait.cancel();
    });
    const called = await wait.run(async () => await toCallResult(call()));
    const isOver = called.kind !== 'interrupted' || !isWoken;
    if (isOver || CancellationScope.current().consideredCancelled) return called;
  }
}

/** Returns the result of a call after which there is no rerun. */
function endOf(called: CallResult<RerunPlan>): Ended | undefined {
  if (called.kind !== 'done') return failureOf(called);
  const { value } = called;
  if (value.kind === 'rerun') return undefined;
  // Only one is requested, so this is not expected.
  if (value.kind === 'forceCancel') return { outcome: 'failed', reason: 'not_concluded' };
  const { kind: outcome, reason, message: why } = value;
  return { outcome, reason, ...(why === undefined ? {} : { why }) };
}

/**
 * Returns the result after a call that failed.
 *
 * @throws ApplicationFailure if the activity rejected this workflow
 */
function failureOf(called: Exclude<CallResult<unknown>, { kind: 'done' }>): Ended {
  if (called.kind === 'interrupted') return { outcome: 'failed', reason: 'interrupted' };
  if (called.type === FAILURE_TYPES.foreignObject)
    throw ApplicationFailure.nonRetryable(called.message, called.type);
  const isActive = called.type === FAILURE_TYPES.jobNotEnded;
  return {
    outcome: 'failed',
    reason: isActive ? 'run_active' : 'unavailable',
    why: called.message,
  };
}

function attemptOf(called: CallResult<RerunPlan>): number {
  return called.kind === 'done' && called.value.kind === 'rerun' ? called.value.attempt : 1;
}

/** Publishes the result in lists, details and metrics, and returns it. */
function finish({ why, job, ...ended }: Ended & Pick<RerunResult, 'job'>): RerunResult {
  const { outcome, reason, attempt, forceCancelled } = ended;
  const subject = job === undefined ? 'The job' : `Job ${job.id} of ${job.repository}`;
  const message =
    reason === undefined
      ? `${subject} runs again in attempt ${attempt} of its workflow run.`
      : `${subject} does not run again: ${WHY[reason]}${why === undefined ? '' : ` (${why})`}.`;
  const early = forceCancelled === true ? ' Its workflow run was force-cancelled before.' : '';
  const result: RerunResult = {
    ...ended,
    message: `${message}${early}`,
    ...(job === undefined ? {} : { job }),
  };
  upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.outcome, value: outcome }]);
  setCurrentDetails(escapeMarkdown(result.message));
  countRerun(result);
  return result;
}
