import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import {
  cancelSignal,
  type CancelRequest,
  jobStatusQuery,
  stepEndedSignal,
  stepPodCreatedSignal,
  type JobInput,
  type JobResult,
  type JobStage,
} from '../../core/contract/index.ts';
import { isRejectedPayload } from '../../core/domain/rejectedPayload.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseCancelRequest } from '../../core/domain/cancellation.ts';
import type { JobSpec } from '../../core/input/job.ts';
import { toCallResult, workerActivities } from '../shared/activityProxies.ts';
import { initializeJobCounters, countCompletedJob } from '../shared/metrics.ts';
import { pinVersion } from '../shared/versioning.ts';
import { deleteJobClaim } from './claim.ts';
import { upsertJobAttributes, upsertStage, upsertVerdict } from './display.ts';
import { JobRun, type RunningStep } from './jobRun.ts';
import { nextAction, type JobAction } from './plan.ts';
import { startStep, stopStep } from './steps.ts';

/**
 * Runs a job of several steps: pre, test and post. Each step is a `runner` workflow. The post steps
 * run after an interruption as well. Completes with a verdict ({@link JobResult}). The workflow
 * ends as Cancelled only after a Temporal cancellation, and as Failed only for invalid input and
 * defects.
 *
 * @param input - validated in the first step, against the settings of a worker
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every invalid field
 */
export async function job(input: JobInput): Promise<JobResult> {
  const run = new JobRun(await admit(input), workflowInfo().startTime.getTime());
  registerHandlers(run);
  void CancellationScope.current().cancelRequested.catch(() => {
    if (run.haveStepsEnded) return;
    run.workflowCancelled = true;
    run.requestCancel({ mode: 'stop', reason: 'the workflow was cancelled', by: 'cancelled' });
  });
  // The post steps must run whatever interrupts the job, so a Temporal cancellation is handled as a
  // cancel request and does not interrupt them.
  const result = await CancellationScope.nonCancellable(async () => await runSteps(run));
  if (run.workflowCancelled) throw new CancelledFailure(result.message);
  return result;
}

pinVersion(job);

/** Executes one action after the other, as decided by plan.ts, until the job has ended. */
async function runSteps(run: JobRun): Promise<JobResult> {
  upsertJobAttributes(run.spec);
  initializeJobCounters();
  for (const warning of run.spec.loggedWarnings ?? []) run.logLine(`warning: ${warning}`);
  let shown: JobStage | undefined;
  for (;;) {
    const action = nextAction(run.facts());
    switch (action.kind) {
      case 'start': {
        const step = stepAt(run, action);
        if (step.spec.stage !== shown) upsertStage((shown = step.spec.stage));
        await startStep(run, step);
        break;
      }
      case 'leave':
        Object.assign(stepAt(run, action).status, { state: action.state, message: action.reason });
        break;
      case 'interrupt':
        run.interrupt(action);
        break;
      case 'outOfGrace':
        run.expireGrace();
        break;
      case 'stop':
        await stopStep(run, stepAt(run, action), action);
        break;
      case 'wait':
        await waitForEvent(run, stepAt(run, action), action.untilMs);
        break;
      case 'end': {
        const { outcome, cause, message } = action.verdict;
        await deleteJobClaim(run);
        run.close(action.verdict);
        upsertVerdict(action.verdict);
        countCompletedJob(outcome);
        return {
          outcome,
          ...omitUndefined({ cause }),
          message,
          name: run.spec.name,
          steps: run.status().steps,
          log: run.log,
        };
      }
    }
  }
}

/**
 * Admits the job in a regular activity, not a local one, because deadlines are evaluated
 * immediately afterwards.
 */
async function admit(input: JobInput): Promise<JobSpec> {
  const { workflowId, firstExecutionRunId: runId } = workflowInfo();
  const called = await toCallResult(
    workerActivities('Validate the job').admitJob({ input, workflowId, runId }),
  );
  if (called.kind === 'done') return called.value;
  if (called.kind === 'interrupted')
    throw new CancelledFailure('The job was cancelled before a step started');
  throw ApplicationFailure.nonRetryable(called.message, called.type);
}

function registerHandlers(run: JobRun): void {
  setHandler(cancelSignal, (body) => onCancel(run, body), {
    description:
      'Cancel this job; post still runs, except with force. Body: "reason" or {reason, mode: "drain"|"stop"|"force", by}',
  });
  setHandler(stepPodCreatedSignal, (body) => run.onStepPodCreated(body), {
    description: 'A step has a pod',
  });
  setHandler(stepEndedSignal, (body) => run.onStepEnded(body), {
    description: 'A step has ended; its pod is being deleted',
  });
  setHandler(jobStatusQuery, () => run.status(), {
    description: 'Steps, waits and log of the job',
  });
}

function onCancel(run: JobRun, body: CancelRequest | string | undefined): void {
  if (!isRejectedPayload(body)) run.requestCancel(parseCancelRequest(body));
}

function stepAt(run: JobRun, { step }: Extract<JobAction, { step: number }>): RunningStep {
  const found = run.steps[step];
  if (found === undefined)
    throw ApplicationFailure.nonRetryable(`The job has no step ${step}`, 'Defect');
  return found;
}

/**
 * Waits for the next change. Each deadline has one timer, however many steps end before it, so that
 * the job's history stays short.
 */
async function waitForEvent(
  run: JobRun,
  { spec: { stage, name }, status: { state } }: RunningStep,
  untilMs: number | undefined,
): Promise<void> {
  run.waitFor(
    state === 'ended' ? `the pod of ${stage} ${name} to be gone` : `${stage} ${name} to end`,
    untilMs,
  );
  if (untilMs !== undefined && !run.timers.has(untilMs)) void startDeadlineTimer(run, untilMs);
  const { changeCount } = run;
  await condition(() => run.changeCount !== changeCount);
}

async function startDeadlineTimer(run: JobRun, atMs: number): Promise<void> {
  run.timers.add(atMs);
  await sleep(Math.max(1, atMs - Date.now()), { summary: 'Wait for a deadline of the job' });
  run.timers.delete(atMs);
  run.changeCount++;
}
