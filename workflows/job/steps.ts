/** Starts, follows and stops a step, which is a `runner` child workflow. */
import {
  CancelledFailure,
  TerminatedFailure,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/common';
import { ChildWorkflowFailure, ParentClosePolicy, log, startChild } from '@temporalio/workflow';
import {
  RUNNER_WORKFLOW,
  cancelSignal,
  type RunnerInput,
  type RunnerResult,
  type StepStatus,
} from '../../core/contract/index.ts';
import { STOP_REASON_BY_CAUSE } from '../../core/domain/cancellation.ts';
import type { JobRun, RunningStep } from './jobRun.ts';
import { isInterrupted, type JobAction } from './plan.ts';

/** Starts the workflow of a step. Its end is handled later. */
export async function startStep(run: JobRun, step: RunningStep): Promise<void> {
  const { spec, status } = step;
  run.logLine(`Running step ${spec.name}.`);
  Object.assign(status, { state: 'running', startedAt: new Date().toISOString() });
  try {
    step.handle = await startChild<(input: RunnerInput) => Promise<RunnerResult>>(RUNNER_WORKFLOW, {
      workflowId: spec.workflowId,
      args: [childInput(run, step)],
      // If the job is terminated, the step's workflow can still clean up after itself.
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: `${spec.stage} ${spec.name}`,
    });
    step.isRunning = true;
    void watchStep(run, step, step.handle.result());
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    run.onStepCompleted(step, {
      outcome: 'errored',
      message: `${spec.workflowId} is already running: a step of an earlier run of this job, or another workflow with this ID`,
    });
  }
}

/**
 * Returns the input of the step's workflow, with the SHARED_DIR contents of previous steps. A post
 * step also receives the reason for which the job was interrupted, if it was.
 */
function childInput(run: JobRun, step: RunningStep): RunnerInput {
  const {
    spec: { runner: admitted, storage, stage },
  } = step;
  const { cancel } = run;
  const runner = { ...admitted, storage: { ...storage, sharedDirSources: run.sharedFor(step) } };
  if (stage !== 'post' || cancel === undefined || !isInterrupted(cancel)) return runner;
  return { ...runner, env: { ...runner.env, JOB_STOP_REASON: STOP_REASON_BY_CAUSE[cancel.by] } };
}

async function watchStep(
  run: JobRun,
  step: RunningStep,
  result: Promise<RunnerResult>,
): Promise<void> {
  const end = await result.catch(withoutVerdict);
  step.isRunning = false;
  run.changeCount++;
  // The end that the step has already reported takes precedence.
  if (step.status.state === 'running') run.onStepCompleted(step, end);
}

/**
 * Returns the end of a step whose workflow has no verdict: it was ended from outside, or its worker
 * rejected its input.
 */
function withoutVerdict(error: unknown): Pick<StepStatus, 'outcome' | 'cause' | 'message'> {
  if (!(error instanceof ChildWorkflowFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure)
    return {
      outcome: 'aborted',
      cause: 'cancelled',
      message: cause.message || 'its workflow was cancelled',
    };
  if (cause instanceof TerminatedFailure)
    return {
      outcome: 'errored',
      message: 'its workflow was terminated; its objects may be left',
    };
  return { outcome: 'errored', message: cause?.message ?? error.message };
}

/**
 * Stops a running step. Its workflow passes the reason to the supervisor and keeps its grace
 * period.
 */
export async function stopStep(
  run: JobRun,
  step: RunningStep,
  { mode, by: stopReason, reason }: Extract<JobAction, { kind: 'stop' }>,
): Promise<void> {
  const { status, handle, stopRequested } = step;
  step.stopRequested = mode;
  if (stopRequested === undefined && status.pod !== undefined)
    run.logLine(`cleanup: Deleting pod ${status.pod}`);
  try {
    await handle?.signal(cancelSignal, { mode, stopReason, reason });
  } catch (error) {
    log.info('The step was not cancelled, because it has ended', {
      step: status.workflowId,
      why: String(error),
    });
  }
}
