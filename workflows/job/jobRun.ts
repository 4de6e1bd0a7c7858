/** The state of one job, and what news does to it. */
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
import type { JobSpec, StepSpec } from '../../core/input/job.ts';
import { renderDetails } from './display.ts';
import {
  isInterrupted,
  type JobAction,
  type JobFacts,
  type JobVerdict,
  type StepFacts,
} from './plan.ts';
import { parseStepEnded, parseStepPodCreated } from './stepEvents.ts';

/** One step: what it is, what has become of it, and how it is spoken to. */
export interface RunningStep {
  readonly spec: StepSpec;
  readonly status: StepStatus;
  stopRequested?: NonNullable<StepFacts['stopRequested']>;
  /** How many pods it has had. */
  attempts: number;
  /** Its life is not over: until then its pod may be there. */
  isRunning: boolean;
  handle?: ChildWorkflowHandle<(input: RunnerInput) => Promise<RunnerResult>>;
}

/** So many attempts in a row were all lost with their nodes: nobody looks further back. */
const MAX_SOURCES = 20;

type StepEnd = Pick<StepStatus, 'outcome' | 'cause' | 'exitCode' | 'message'> & {
  readonly attempt?: number;
};

/** Its clock is the workflow's own. */
export class JobRun {
  readonly spec: JobSpec;
  readonly steps: readonly RunningStep[];
  readonly log: JobLogLine[] = [];
  cancel: Cancellation | undefined;
  /** Plain cancellation was requested: the workflow ends Cancelled. */
  workflowCancelled = false;
  /** The job's grace was over before the job was. */
  outOfGrace = false;
  /** Counts what has happened: who waits sees that something has. */
  changeCount = 0;
  /** Deadlines that a timer was set for (ms since the epoch). */
  readonly timers = new Set<number>();
  readonly #startedAtMs: number;
  #firstPodAtMs: number | undefined;
  #interruptedAtMs: number | undefined;
  #waits: Pick<JobStatus, 'waitingFor' | 'waitingUntil'> = {};
  #verdict: JobVerdict | undefined;

  /** @param startedAtMs - when the job was started (ms since the epoch) */
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

  /** A line of the job's own log. */
  logLine(message: string): void {
    this.log.push({ at: new Date().toISOString(), message });
  }

  requestCancel(wanted: Cancellation): void {
    this.cancel = upgradeCancellation(this.cancel, wanted);
    this.changeCount++;
    if (!isInterrupted(this.cancel) || this.#interruptedAtMs !== undefined) return;
    this.#interruptedAtMs = Date.now();
    this.logLine('Received signal. signal=interrupt');
    this.logLine('error: Process interrupted with signal interrupt, cancelling execution...');
  }

  /** A deadline of the job's own is over. */
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

  /** The last thing in a job. One that was ended by force has had no grace. */
  close(verdict: JobVerdict): void {
    this.#verdict = verdict;
    this.waitFor(undefined);
    if (this.#interruptedAtMs !== undefined && !this.outOfGrace && this.cancel?.mode !== 'force')
      this.logLine(
        `Process gracefully exited before ${formatDuration(this.spec.gracePeriodMs)} grace period`,
      );
  }

  /** The job's clock starts with the first pod. */
  onStepPodCreated(body: unknown): void {
    const news = parseStepPodCreated(body);
    const step = this.steps.find(({ status }) => status.workflowId === news?.workflowId);
    if (step === undefined || news === undefined) return;
    if (step.status.pod !== news.pod) step.attempts++;
    step.status.pod = news.pod;
    this.#firstPodAtMs ??= Date.now();
    this.changeCount++;
  }

  /** The step is over before its life is, which tidies up. Of another one, or once more, it is no news. */
  onStepEnded(body: unknown): void {
    const news = parseStepEnded(body);
    const step = this.steps.find(({ status }) => status.workflowId === news?.workflowId);
    if (step?.status.state !== 'running' || news === undefined) return;
    const { outcome, cause, exitCode, message, attempt } = news;
    this.onStepCompleted(step, {
      outcome,
      ...omitUndefined({ cause, exitCode, message, attempt }),
    });
  }

  /** What a life's news of its pods did not tell, its result does. */
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

  /** What the steps before have left for this one in SHARED_DIR: keys of the store, the last first. */
  sharedFor(step: RunningStep): string[] {
    const before = this.steps.slice(0, this.steps.indexOf(step)).toReversed();
    return before
      .flatMap(({ spec: { storage }, attempts }) => sharedDirKeys(storage.path, attempts))
      .slice(0, MAX_SOURCES);
  }

  /** Says what the job waits for, and until when (ms since the epoch). */
  waitFor(waitingFor: string | undefined, untilMs?: number): void {
    this.#waits = omitUndefined({
      waitingFor,
      waitingUntil: untilMs === undefined ? undefined : new Date(untilMs).toISOString(),
    });
    renderDetails(this.spec, this.status(), this.#verdict);
  }

  facts(): JobFacts {
    const { cancel, outOfGrace, spec } = this;
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
