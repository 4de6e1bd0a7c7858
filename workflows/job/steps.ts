/** A step is a runner's whole life, as a child workflow: how it is started, followed and stopped. */
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

/** Begins the life of a step. Its end is heard of later. */
export async function startStep(run: JobRun, step: RunningStep): Promise<void> {
  const { spec, status } = step;
  run.logLine(`Running step ${spec.name}.`);
  Object.assign(status, { state: 'running', startedAt: new Date().toISOString() });
  try {
    step.handle = await startChild<(input: RunnerInput) => Promise<RunnerResult>>(RUNNER_WORKFLOW, {
      workflowId: spec.workflowId,
      args: [childInput(run, step)],
      // A job that is terminated leaves a life that can tidy up after itself.
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: `${spec.stage} ${spec.name}`,
    });
    step.isRunning = true;
    void watchStep(run, step, step.handle.result());
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    run.onStepCompleted(step, {
      outcome: 'errored',
      message: `${spec.workflowId} runs already: a step of an earlier run of this job, or another workflow that has its id`,
    });
  }
}

/** With what those before it left; a step of `post` is told what has interrupted the job, if something has. */
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
  // What it has told before stands.
  if (step.status.state === 'running') run.onStepCompleted(step, end);
}

/** A life that gave no verdict: somebody has ended it from outside, or its worker refused its input. */
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
      message: 'its workflow was terminated; what it had made may be left',
    };
  return { outcome: 'errored', message: cause?.message ?? error.message };
}

/** Has a running step stopped: its life tells its supervisor why, and keeps its grace. */
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
    log.info('The step was not told to stop: it has ended', {
      step: status.workflowId,
      why: String(error),
    });
  }
}
