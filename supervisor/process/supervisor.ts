import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { EndRecord, SupervisorAction } from '../signals/actions.ts';
import { startChild } from './child.ts';
import { childEnvironment } from './childEnvironment.ts';
import { CommandProcesses, sendSignal } from './commandProcesses.ts';
import type { StoppingSignal, SupervisorEvent } from '../signals/events.ts';
import { EXIT_NOT_RUN } from './exitStatus.ts';
import type { RunnerKind } from '../../core/domain/runnerKinds/runnerKind.ts';
import { RUNNER_KINDS, takesJobs } from '../../core/domain/runnerKinds/runnerKinds.ts';
import { JobHooks } from '../ciRunner/jobHooks.ts';
import { RunnerLog } from '../ciRunner/runnerLog.ts';
import { isReady, jobRecord } from '../ciRunner/jobState.ts';
import { JobWatch } from '../ciRunner/jobWatch.ts';
import { exitProcess } from './exitProcess.ts';
import { INITIAL_STATE, type LifecycleState, step } from '../signals/lifecycle.ts';
import type { Options } from '../settings/options.ts';
import { Pending } from './pending.ts';
import { SharedDirError } from '../records/sharedSnapshot.ts';
import { restoreShared, takeShared } from '../records/sharedFolder.ts';
import { type Probes, serveProbes } from '../ciRunner/probes.ts';
import { StopReasonFiles } from '../signals/stopReasonFiles.ts';
import { temporaryFolder } from './temporaryDirectory.ts';
import { Timers } from './timers.ts';
import { withTimeout } from './withTimeout.ts';
import { StopSignals } from './stopSignals.ts';
import { CommandOutput } from '../records/commandOutput.ts';
import { EndRecorder } from '../records/endRecorder.ts';

/** Maximum time of each last step when the supervisor gives up (ms). */
const LAST_MOMENT_MS = 200;
/** Maximum time to wait for file operations before the process ends (ms). */
const SETTLE_MS = 2_000;
/** Interval between reads of the stop reason source (ms). */
const CHECK_INTERVAL_MS = 500;
/** Environment variable that marks the processes of a supervisor. */
const MARK = 'HOLDFAST_SUPERVISOR';

/** Executes the actions of the lifecycle, and passes events to it. Ends the process. */
export class Supervisor {
  readonly #options: Options;
  readonly #kind: RunnerKind;
  readonly #takesJobs: boolean;
  readonly #pending = new Pending();
  /**
   * Distinguishes the processes of this supervisor from those of another. It does not use
   * node:crypto, which would cost 1.5 MB for a value that is not secret.
   */
  readonly #id = `${process.pid}-${Date.now()}-${Math.random()}`;
  readonly #processes: CommandProcesses;
  readonly #stops: StopSignals;
  readonly #output: CommandOutput;
  readonly #recorder: EndRecorder;
  readonly #timers = new Timers((name) => this.#onEvent({ kind: 'timer', name }));
  readonly #job = new JobWatch(
    () => this.#onEvent({ kind: 'jobEnded' }),
    () => this.#probes?.changed(),
  );
  readonly #finished = new AbortController();
  #state: LifecycleState = INITIAL_STATE;
  #reasons: StopReasonFiles | undefined;
  #probes: Probes | undefined;
  #env: NodeJS.ProcessEnv = {};
  /** Temporary directory that is removed at the end. */
  #temporary: string | undefined;
  #startedAt: string | null = null;
  #endedAt: string | undefined;
  #sweeping: Promise<number[]> | undefined;
  #unkillable = '';
  /** Whether a job was running when the first stop signal was sent. Undefined before that. */
  #busyWhenSignalled: boolean | undefined;
  #isFailing = false;

  constructor(options: Options) {
    this.#options = options;
    this.#kind = RUNNER_KINDS[options.runnerKind];
    this.#takesJobs = takesJobs(options.runnerKind);
    this.#processes = new CommandProcesses(`${MARK}=${this.#id}`, options.assumeDedicatedPid1);
    this.#stops = new StopSignals(this.#processes);
    this.#output = new CommandOutput(options, this.#kind, this.#pending);
    this.#recorder = new EndRecorder(options, this.#pending, this.#output.log);
  }

  /** Handles a signal from outside. */
  stop(signal: StoppingSignal): void {
    this.#onEvent({
      kind: 'stopSignal',
      signal,
      idle: this.#takesJobs && !this.#job.state.busy && !this.#job.isReporting,
    });
  }

  /** Forwards a signal that only the command handles. */
  forwardSignal(signal: NodeJS.Signals): void {
    this.#onEvent({ kind: 'otherSignal', signal });
  }

  /** Handles a defect of the supervisor itself: kills all processes and records the failure. */
  failed(error: unknown): void {
    this.#output.log(
      'error',
      `Supervisor failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
    const status = { kind: 'code', code: EXIT_NOT_RUN } as const;
    if (this.#isFailing) return exitProcess(status, this.#pending);
    this.#isFailing = true;
    this.#state = { ...this.#state, phase: 'done' };
    this.#execute({
      kind: 'abandon',
      status,
      unrecorded: { exitCode: EXIT_NOT_RUN, signal: null, reason: this.#state.reason },
    });
  }

  /** Starts the command. A failure is reported as an event of the lifecycle. */
  async start(): Promise<void> {
    try {
      await this.#prepare();
    } catch (error) {
      return this.#onEvent({ kind: 'startFailed', message: (error as Error).message });
    }
    this.#onEvent({ kind: 'ready' });
  }

  async #prepare(): Promise<void> {
    const { probes, stateDir, attempt, stopReasonSource } = this.#options;
    if (stateDir !== undefined) await this.#pending.track(mkdir(stateDir, { recursive: true }));
    const folder = await this.#pending.track(this.#runDir());
    const reasons = new StopReasonFiles(
      join(folder, 'stop-reason'),
      stopReasonSource,
      this.#pending,
    );
    await this.#pending.track(rm(reasons.forChild, { force: true }));
    this.#reasons = reasons;
    if (this.#options.shared !== undefined)
      await this.#pending.track(restoreShared(this.#options.shared));
    if (stopReasonSource !== undefined)
      setInterval(() => this.#checkStopReason(), CHECK_INTERVAL_MS);
    const variables: Record<string, string> = {
      [MARK]: this.#id,
      HOLDFAST_STOP_REASON_FILE: reasons.forChild,
      HOLDFAST_ATTEMPT: String(attempt),
    };
    if (stateDir !== undefined) variables['HOLDFAST_STATE_DIR'] = stateDir;
    this.#env = childEnvironment(process.env, variables);
    if (this.#kind.jobHooks !== undefined) {
      const hooks = new JobHooks(folder, this.#kind.jobHooks, this.#pending);
      Object.assign(this.#env, await hooks.install(this.#env));
      this.#job.hooks(hooks, (error) =>
        this.#output.log(
          'error',
          `failed to read the notes of the job hooks: ${(error as Error).message}`,
        ),
      );
    }
    if (probes !== undefined) this.#probes = await this.#serve(probes);
    // Open the log file after the probes listen, so that a reader who finds the file can rely on
    // them.
    await this.#output.open(folder);
    if (this.#probes !== undefined)
      this.#output.log('info', `Probes listen on port ${this.#probes.port}`);
  }

  async #serve(probes: NonNullable<Options['probes']>): Promise<Probes> {
    const { ephemeral } = this.#options;
    const runs = (): boolean => this.#startedAt !== null && this.#state.end === undefined;
    return await serveProbes(
      {
        startup: () => runs() && (!this.#takesJobs || this.#job.state.online),
        // Stays ready after the runner has ended: "not ready" must only mean that a job is running.
        ready: () => this.#takesJobs && isReady(this.#job.state, ephemeral),
      },
      probes,
    );
  }

  async #runDir(): Promise<string> {
    const { runDir } = this.#options;
    if (runDir === undefined) return (this.#temporary = await temporaryFolder());
    await mkdir(runDir, { recursive: true });
    return runDir;
  }

  #checkStopReason(): void {
    const reason = this.#reasons?.readStated();
    if (reason !== undefined) this.#step({ kind: 'stated', reason });
  }

  #onEvent(event: SupervisorEvent): void {
    this.#checkStopReason();
    this.#step(event);
    this.#probes?.changed();
  }

  #step(event: SupervisorEvent): void {
    const { state, actions } = step(this.#state, event, this.#options.plan);
    this.#state = state;
    for (const action of actions) this.#execute(action);
  }

  #execute(action: SupervisorAction): void {
    switch (action.kind) {
      case 'log':
        return this.#output.log(action.level, action.msg);
      case 'spawn':
        return this.#spawn();
      case 'startTimer':
        return this.#timers.start(action.name, action.ms);
      case 'stopTimers':
        return this.#timers.stop(action.except);
      case 'tellReason':
        return this.#reasons?.writeForChild(action.reason, (error) =>
          this.#output.log('error', `failed to write the stop reason: ${(error as Error).message}`),
        );
      case 'sendStop':
        return this.#background(this.#sendStop(action));
      case 'signalChild':
        if (this.#processes.child !== undefined) sendSignal(this.#processes.child, action.signal);
        return;
      case 'awaitGroup':
        return this.#background(this.#awaitGroup());
      case 'sweep':
        return this.#background(this.#sweep());
      case 'record':
        return this.#background(
          this.#record(action.verdict).then(() => this.#onEvent({ kind: 'recorded' })),
        );
      case 'cleanup':
        return this.#cleanup(action.verdict);
      case 'exit':
        return this.#background(this.#exit(action));
      case 'abandon':
        return this.#background(this.#giveUp(action));
    }
  }

  #spawn(): void {
    const { command } = this.#options;
    const { log } = this.#kind;
    const pipes = startChild(command, this.#env, this.#output.mode, {
      spawned: (pid) => {
        this.#processes.child = pid;
        this.#startedAt = new Date().toISOString();
        this.#recorder.noteStart(this.#startedAt);
        this.#onEvent({ kind: 'spawned' });
      },
      failed: (message) => this.#onEvent({ kind: 'startFailed', message }),
      exited: (end) => {
        this.#endedAt = new Date().toISOString();
        this.#onEvent({ kind: 'childExited', end });
      },
    });
    this.#output.forward(pipes, async (stdout, output) => {
      if (log !== undefined) await this.#job.follow(stdout, output, new RunnerLog(log));
    });
  }

  async #sendStop(action: SupervisorAction & { kind: 'sendStop' }): Promise<void> {
    await this.#reasons?.written();
    this.#busyWhenSignalled ??= this.#job.state.busy;
    if (this.#kind.stop.finishesJob) this.#job.ignoreEnd();
    this.#stops.send(action, { ended: this.#state.end !== undefined });
  }

  async #awaitGroup(): Promise<void> {
    if (await this.#processes.groupEmpty(this.#finished.signal))
      this.#onEvent({ kind: 'groupEmpty' });
  }

  async #sweep(): Promise<void> {
    // One sweep at a time: a sweep still in progress when the next is requested would kill the
    // cleanup command.
    this.#sweeping ??= this.#processes.sweep().finally(() => (this.#sweeping = undefined));
    const remaining = (await this.#sweeping).join(', ');
    if (remaining !== '' && remaining !== this.#unkillable)
      this.#output.log('error', `Could not kill processes ${remaining}`);
    this.#unkillable = remaining;
    this.#onEvent({ kind: 'swept' });
  }

  async #record(verdict: EndRecord): Promise<void> {
    const job = this.#takesJobs
      ? {
          job: jobRecord(this.#job.state, {
            busyWhenSignalled: this.#busyWhenSignalled === true,
            finishedJob: this.#kind.stop.finishesJob && this.#state.end?.code === 0,
          }),
        }
      : {};
    await this.#recorder.record(verdict, {
      startedAt: this.#startedAt,
      endedAt: this.#endedAt ?? new Date().toISOString(),
      ...job,
      ...(this.#output.isTruncated ? { logTruncated: true } : {}),
    });
  }

  /** Writes the record again if the log was truncated after the record was written. */
  async #recordTruncation(): Promise<void> {
    const { withoutTruncation } = this.#recorder;
    if (withoutTruncation !== undefined && this.#output.isTruncated)
      await this.#record(withoutTruncation);
  }

  #cleanup({ exitCode, signal, reason }: EndRecord): void {
    const env = {
      ...this.#env,
      HOLDFAST_STOP_REASON: reason ?? '',
      HOLDFAST_EXIT_CODE: String(exitCode),
      HOLDFAST_EXIT_SIGNAL: signal ?? '',
    };
    startChild(this.#options.cleanupCommand ?? [], env, 'nothing', {
      spawned: (pid) => (this.#processes.child = pid),
      failed: (message) => {
        this.#output.log('error', `Could not start the cleanup command: ${message}`);
        this.#onEvent({ kind: 'cleanupEnded' });
      },
      exited: ({ code, signal: by }) => {
        if (code !== 0)
          this.#output.log('error', `Cleanup command ended with ${by ?? `status ${code}`}`);
        this.#onEvent({ kind: 'cleanupEnded' });
      },
    });
  }

  /**
   * Ends the process after the last output has been written. The timer that ends a hanging
   * supervisor keeps running until then.
   */
  async #exit({ status }: SupervisorAction & { kind: 'exit' }): Promise<void> {
    this.#finished.abort();
    this.#probes?.release();
    if (this.#options.plan.cleanup) await this.#processes.sweep();
    await this.#snapshotShared();
    await this.#output.commandWritten();
    await this.#recordTruncation();
    await this.#output.drained();
    await this.#removeTemporary();
    // Wait for a file operation in progress, such as a read: exiting during it would lose the
    // status.
    if (status.kind === 'code') await withTimeout(SETTLE_MS, this.#pending.settled());
    exitProcess(status, this.#pending);
  }

  /**
   * Takes the snapshot of SHARED_DIR. No process of the command is running any more. The uploader
   * reports contents that cannot be passed on.
   */
  async #snapshotShared(): Promise<void> {
    const { shared } = this.#options;
    if (shared === undefined || this.#startedAt === null) return;
    try {
      await takeShared(shared, this.#pending);
    } catch (error) {
      if (error instanceof SharedDirError) return;
      this.#output.log(
        'error',
        `Could not take the snapshot of SHARED_DIR: ${(error as Error).message}`,
      );
    }
  }

  async #giveUp({ status, unrecorded }: SupervisorAction & { kind: 'abandon' }): Promise<void> {
    this.#finished.abort();
    if (unrecorded !== undefined && !this.#pending.any)
      await withTimeout(LAST_MOMENT_MS, this.#record(unrecorded));
    this.#processes.killAll();
    await withTimeout(
      LAST_MOMENT_MS,
      Promise.all([this.#removeTemporary(), this.#output.logDrained()]).then(() =>
        this.#pending.settled(),
      ),
    );
    exitProcess(status, this.#pending);
  }

  async #removeTemporary(): Promise<void> {
    if (this.#temporary !== undefined)
      await this.#pending.track(rm(this.#temporary, { recursive: true, force: true }));
  }

  #background(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.failed(error));
  }
}
