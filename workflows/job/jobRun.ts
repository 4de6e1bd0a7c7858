/** State of one job, and how events change it. */
import type { ChildWorkflowHandle } from '@temporalio/workflow';
import type {
  JobLogLine,
  JobStatus,
  RunnerInput,
  RunnerResult,
  StepStatus,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { sharedDirKeys, stepPrefix } from '../../core/domain/artifactLayout.ts';
import { upgradeCancellation, type Cancellation } from '../../core/domain/cancellation.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import type { JobSpec } from '../../core/input/job.ts';
import type { StepSpec } from '../../core/input/stepSpec.ts';
import { renderDetails } from './display.ts';
import {
  isInterrupted,
  type JobAction,
  type JobFacts,
  type JobVerdict,
  type StepFacts,
} from './plan.ts';
import { parseStepEnded, parseStepPodCreated } from './stepEvents.ts';

/** Step of a job: its spec, its status and the handle of its workflow. */
export interface RunningStep {
  readonly spec: StepSpec;
  readonly status: StepStatus;
  stopRequested?: NonNullable<StepFacts['stopRequested']>;
  /** Number of pods that the step has had. */
  attempts: number;
  /** Whether the step's workflow is running. Until it has ended, its pod may exist. */
  isRunning: boolean;
  handle?: ChildWorkflowHandle<(input: RunnerInput) => Promise<RunnerResult>>;
}

/**
 * Maximum number of previous attempts whose SHARED_DIR is searched for. If this many attempts in a
 * row were lost with their nodes, older ones are not searched.
 */
const MAX_SOURCES = 20;

type StepEnd = Pick<StepStatus, 'outcome' | 'cause' | 'exitCode' | 'message'> & {
  readonly attempt?: number;
};

/** State of a job. Its times use the workflow's own clock. */
export class JobRun {
  readonly spec: JobSpec;
  readonly steps: readonly RunningStep[];
  readonly log: JobLogLine[] = [];
  cancel: Cancellation | undefined;
  /** Whether a Temporal cancellation was requested. The workflow then ends as Cancelled. */
  workflowCancelled = false;
  /** Strongest cancel request after the end of the last step. */
  lateCancel: Cancellation | undefined;
  /** Whether the job's grace period expired before the job ended. */
  outOfGrace = false;
  /** Number of changes so far, by which a waiting workflow recognizes a change. */
  changeCount = 0;
  /** Deadlines for which a timer is running (ms since the epoch). */
  readonly timers = new Set<number>();
  readonly #startedAtMs: number;
  #firstPodAtMs: number | undefined;
  #interruptedAtMs: number | undefined;
  #waits: Pick<JobStatus, 'waitingFor' | 'waitingUntil'> = {};
  #verdict: JobVerdict | undefined;

  /** @param startedAtMs - start of the job (ms since the epoch) */
  constructor(spec: JobSpec, startedAtMs: number) {
    this.spec = spec;
    this.#startedAtMs = startedAtMs;
    this.steps = spec.steps.map((each) => {
      const { stage, name, workflowId, bestEffort } = each;
      return {
        spec: each,
        attempts: 0,
        isRunning: false,
        status: {
          stage,
          name,
          workflowId,
          state: 'waiting',
          ...(bestEffort ? { bestEffort } : {}),
        },
      };
    });
  }

  /** Adds a line to the job's own log. */
  logLine(message: string): void {
    this.log.push({ at: new Date().toISOString(), message });
  }

  /** Whether every step has ended or will not run. Their pods may still be there. */
  get haveStepsEnded(): boolean {
    return this.steps.every(({ status: { state } }) => state !== 'waiting' && state !== 'running');
  }

  /**
   * Handles a cancel request. The first one that interrupts the job starts its grace period. After
   * the last step, the job keeps its result; a forced cancel still ends the deletion of its pods.
   */
  requestCancel(wanted: Cancellation): void {
    if (this.haveStepsEnded) {
      this.lateCancel = upgradeCancellation(this.lateCancel, wanted);
      this.changeCount++;
      return;
    }
    this.cancel = upgradeCancellation(this.cancel, wanted);
    this.changeCount++;
    if (!isInterrupted(this.cancel) || this.#interruptedAtMs !== undefined) return;
    this.#interruptedAtMs = Date.now();
    this.logLine('Received signal. signal=interrupt');
    this.logLine('error: Process interrupted with signal interrupt, cancelling execution...');
  }

  /** Interrupts the job after one of its own deadlines. */
  interrupt({ deadline }: Extract<JobAction, { kind: 'interrupt' }>): void {
    const { timeoutMs, maxAgeMs } = this.spec;
    const afterMs = deadline === 'timeout' ? timeoutMs : maxAgeMs;
    this.logLine(`Process did not finish before ${formatDuration(afterMs)} timeout`);
    this.requestCancel({
      mode: 'stop',
      by: 'run_timeout',
      reason:
        deadline === 'timeout'
          ? `it ran for ${formatDuration(afterMs)} (timeout)`
          : `it is ${formatDuration(afterMs)} old (maxAge)`,
    });
  }

  expireGrace(): void {
    this.outOfGrace = true;
    this.logLine(
      `Process did not exit before ${formatDuration(this.spec.gracePeriodMs)} grace period`,
    );
  }

  /**
   * Records the verdict. This is the last change of a job. A job that was ended by force had no
   * grace period.
   */
  close(verdict: JobVerdict): void {
    this.#verdict = verdict;
    this.waitFor(undefined);
    if (this.#interruptedAtMs !== undefined && !this.outOfGrace && this.cancel?.mode !== 'force')
      this.logLine(
        `Process gracefully exited before ${formatDuration(this.spec.gracePeriodMs)} grace period`,
      );
  }

  /** Handles the event that a step has a pod. The job's clock starts with the first pod. */
  onStepPodCreated(body: unknown): void {
    const event = parseStepPodCreated(body);
    const step = this.steps.find(({ status }) => status.workflowId === event?.workflowId);
    if (step === undefined || event === undefined) return;
    if (step.status.pod !== event.pod) step.attempts++;
    step.status.pod = event.pod;
    this.#firstPodAtMs ??= Date.now();
    this.changeCount++;
  }

  /**
   * Handles the event that a step has ended, which arrives before the end of its workflow, because
   * that still cleans up. An event about another step, a repeated event, or an event whose sender
   * does not know the run of the step is ignored. The result of the step's workflow decides then.
   */
  onStepEnded(body: unknown): void {
    const event = parseStepEnded(body);
    const step = this.steps.find(({ status }) => status.workflowId === event?.workflowId);
    if (step?.status.state !== 'running' || event === undefined) return;
    if (event.firstRunId !== step.handle?.firstExecutionRunId) return;
    const { outcome, cause, exitCode, message, attempt } = event;
    this.onStepCompleted(step, {
      outcome,
      ...omitUndefined({ cause, exitCode, message, attempt }),
    });
  }

  /**
   * Records the end of a step. The result of the step's workflow provides what its events did not
   * report.
   */
  onStepCompleted(
    step: RunningStep,
    { outcome, cause, exitCode, message, attempt = step.attempts }: StepEnd,
  ): void {
    const { spec, status } = step;
    step.attempts = attempt;
    const folder = attempt > 0 ? stepPrefix(spec.storage.path, attempt) : undefined;
    Object.assign(status, {
      state: 'ended',
      endedAt: new Date().toISOString(),
      ...omitUndefined({ outcome, cause, exitCode, message, artifactPath: folder }),
    });
    this.changeCount++;
  }

  /**
   * Returns the store keys of the SHARED_DIR contents that previous steps have left for this step,
   * latest first.
   */
  sharedFor(step: RunningStep): string[] {
    const before = this.steps.slice(0, this.steps.indexOf(step)).toReversed();
    return before
      .flatMap(({ spec: { storage }, attempts }) => sharedDirKeys(storage.path, attempts))
      .slice(0, MAX_SOURCES);
  }

  /** Sets what the job waits for, and the deadline of that wait (ms since the epoch). */
  waitFor(waitingFor: string | undefined, untilMs?: number): void {
    this.#waits = omitUndefined({
      waitingFor,
      waitingUntil: untilMs === undefined ? undefined : isoTime(untilMs),
    });
    renderDetails(this.spec, this.status(), this.#verdict);
  }

  /** Returns the facts for the plan. */
  facts(): JobFacts {
    const { cancel, lateCancel, outOfGrace, spec } = this;
    const after = (fromMs: number | undefined, ms: number): number | undefined =>
      fromMs === undefined ? undefined : fromMs + ms;
    return {
      steps: this.steps.map(
        ({
          spec: { stage, name, bestEffort, skipOnSuccess },
          status: { state, outcome, cause },
          isRunning,
          stopRequested,
        }) => ({
          stage,
          name,
          bestEffort,
          skipOnSuccess,
          state,
          isRunning,
          ...omitUndefined({ outcome, cause, stopRequested }),
        }),
      ),
      nowMs: Date.now(),
      maxDurationDeadlineMs: this.#startedAtMs + spec.maxAgeMs,
      outOfGrace,
      ...omitUndefined({
        cancel,
        lateCancel,
        timeoutAtMs: after(this.#firstPodAtMs, spec.timeoutMs),
        graceEndsAtMs: after(this.#interruptedAtMs, spec.gracePeriodMs),
      }),
    };
  }

  status(): JobStatus {
    const { cancel, log, spec } = this;
    const steps = this.steps.map(({ status }) => status);
    const stage = steps.find(({ state }) => state === 'running' || state === 'waiting')?.stage;
    return {
      name: spec.name,
      steps,
      log,
      ...this.#waits,
      ...(spec.warnings.length > 0 ? { warnings: [...spec.warnings] } : {}),
      ...omitUndefined({ stage, cancel: cancel && { mode: cancel.mode, reason: cancel.reason } }),
    };
  }
}
