import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SupervisorAction, EndRecord } from '../signals/actions.ts';
import { type OutputMode, startChild } from './child.ts';
import { childEnvironment } from './childEnvironment.ts';
import { CommandProcesses, sendSignal } from './commandProcesses.ts';
import { type Log, eventLog } from '../records/eventLog.ts';
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
import { markerText, writeEndRecord, writeTerminationMessage } from '../records/marker.ts';
import type { Options } from '../settings/options.ts';
import { Output } from '../records/output.ts';
import { Pending } from './pending.ts';
import { forwardOutput } from '../records/forwardOutput.ts';
import { SharedDirError } from '../records/sharedSnapshot.ts';
import { restoreShared, takeShared } from '../records/sharedFolder.ts';
import { openOutputSocket, type OutputSocket } from '../records/outputSocket.ts';
import { type Probes, serveProbes } from '../ciRunner/probes.ts';
import { StopReasonFiles } from '../signals/stopReasonFiles.ts';
import { temporaryFolder } from './temporaryDirectory.ts';
import { Timers } from './timers.ts';
import { outputDrained } from '../records/outputDrained.ts';
import { withTimeout } from './withTimeout.ts';

/** Path at which the kubelet reads a container's termination message. */
const TERMINATION_LOG = '/dev/termination-log';
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
  readonly #stdout = new Output(1, this.#pending);
  readonly #stderr = new Output(2, this.#pending);
  /** File to which both outputs are copied. */
  #file: Output | undefined;
  /** Socket to which the command writes both outputs, if they are merged. */
  #merged: OutputSocket | undefined;
  #logTruncated = false;
  /** Record that was written, and whether it says that the log is truncated. */
  #recorded: { readonly verdict: EndRecord; readonly logTruncated: boolean } | undefined;
  readonly #log: Log = eventLog(this.#stderr);
  /**
   * Distinguishes the processes of this supervisor from those of another. It does not use
   * node:crypto, which would cost 1.5 MB for a value that is not secret.
   */
  readonly #id = `${process.pid}-${Date.now()}-${Math.random()}`;
  readonly #processes: CommandProcesses;
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
  #output: Promise<unknown> = Promise.resolve();
  #startedAt: string | null = null;
  #startNoted: Promise<void> = Promise.resolve();
  #endedAt: string | undefined;
  #sweeping: Promise<number[]> | undefined;
  #unkillable = '';
  /** Processes of the command's group when the first stop signal was sent: start time by PID. */
  #signalledGroup: ReadonlyMap<number, number> | undefined;
  /**
   * Whether the command has received SIGTERM. A second SIGTERM would run its trap again, or end its
   * cleanup.
   */
  #commandHadTerm = false;
  /** Whether a job was running when the first stop signal was sent. Undefined before that. */
  #busyWhenSignalled: boolean | undefined;
  #isFailing = false;

  constructor(options: Options) {
    this.#options = options;
    this.#kind = RUNNER_KINDS[options.runnerKind];
    this.#takesJobs = takesJobs(options.runnerKind);
    this.#processes = new CommandProcesses(`${MARK}=${this.#id}`, options.assumeDedicatedPid1);
  }

  /** Handles a signal from outside. */
  stop(signal: StoppingSignal): void {
    this.#onEvent({
      kind: 'stopSignal',
      signal,
      idle: this.#takesJobs && !this.#job.state.busy,
    });
  }

  /** Forwards a signal that only the command handles. */
  forwardSignal(signal: NodeJS.Signals): void {
    this.#onEvent({ kind: 'otherSignal', signal });
  }

  /** Handles a defect of the supervisor itself: kills all processes and records the failure. */
  failed(error: unknown): void {
    this.#log(
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
    const { probes, stateDir, attempt, stopReasonSource, logFile } = this.#options;
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
        this.#log(
          'error',
          `failed to read the notes of the job hooks: ${(error as Error).message}`,
        ),
      );
    }
    if (probes !== undefined) this.#probes = await this.#serve(probes);
    // Open the log file after the probes listen, so that a reader who finds the file can rely on
    // them.
    if (logFile !== undefined)
      this.#file = await Output.appendingTo(logFile, this.#pending, (error) =>
        this.#onLogFailure(error),
      );
    if (this.#file !== undefined)
      for (const output of [this.#stdout, this.#stderr]) output.copyTo(this.#file);
    await this.#mergeOutput(folder);
    if (this.#probes !== undefined) this.#log('info', `Probes listen on port ${this.#probes.port}`);
  }

  /** Logs the failure once: on a full disk every line fails. */
  #onLogFailure(error: Error): void {
    if (this.#logTruncated) return;
    this.#logTruncated = true;
    this.#log(
      'error',
      `failed to write the log file, which lacks lines from here on: ${error.message}`,
    );
  }

  /**
   * Merges both outputs. Only output that is copied to a file passes through the supervisor;
   * otherwise the command writes to the supervisor's standard output itself.
   */
  async #mergeOutput(folder: string): Promise<void> {
    const { mergeOutput, logFile } = this.#options;
    if (!mergeOutput || logFile === undefined || this.#kind.log !== undefined) return;
    try {
      this.#merged = await openOutputSocket(folder);
    } catch (error) {
      this.#log(
        'error',
        `failed to merge the outputs of the command, so their order may change: ${(error as Error).message}`,
      );
    }
  }

  #outputMode(): OutputMode {
    const { logFile, mergeOutput } = this.#options;
    if (logFile !== undefined) return this.#merged?.forCommand ?? 'both';
    if (this.#kind.log !== undefined) return 'stdout';
    return mergeOutput ? 'merged' : 'nothing';
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
        return this.#log(action.level, action.msg);
      case 'spawn':
        return this.#spawn();
      case 'startTimer':
        return this.#timers.start(action.name, action.ms);
      case 'stopTimers':
        return this.#timers.stop(action.except);
      case 'tellReason':
        return this.#reasons?.writeForChild(action.reason, (error) =>
          this.#log('error', `failed to write the stop reason: ${(error as Error).message}`),
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
    const { stdout, stderr } = startChild(command, this.#env, this.#outputMode(), {
      spawned: (pid) => {
        this.#processes.child = pid;
        this.#startedAt = new Date().toISOString();
        this.#startNoted = this.#noteStart(this.#startedAt);
        this.#onEvent({ kind: 'spawned' });
      },
      failed: (message) => this.#onEvent({ kind: 'startFailed', message }),
      exited: (end) => {
        this.#endedAt = new Date().toISOString();
        this.#onEvent({ kind: 'childExited', end });
      },
    });
    this.#merged?.forCommand.destroy();
    this.#output = Promise.all([
      this.#merged && forwardOutput(this.#merged.reader, this.#stdout),
      stdout &&
        (log === undefined
          ? forwardOutput(stdout, this.#stdout)
          : this.#job.follow(stdout, this.#stdout, new RunnerLog(log))),
      stderr && forwardOutput(stderr, this.#stderr),
    ]);
  }

  /**
   * Sends the signal of a stop. The leader of the process group may have ended while the group is
   * still running, and the ids of ended processes may have been reused.
   */
  async #sendStop({ signal, to }: SupervisorAction & { kind: 'sendStop' }): Promise<void> {
    await this.#reasons?.written();
    this.#busyWhenSignalled ??= this.#job.state.busy;
    if (this.#kind.stop.finishesJob) this.#job.ignoreEnd();
    const { child } = this.#processes;
    if (child === undefined) return;
    const ended = this.#state.end !== undefined;
    // A process stopped by SIGSTOP handles a signal only after it has been continued.
    const send = (pid: number): void => {
      sendSignal(pid, signal);
      if (signal === 'SIGTERM') sendSignal(pid, 'SIGCONT');
    };
    this.#signalledGroup ??= this.#processes.group();
    if (to === 'earlier') {
      const now = this.#processes.group();
      for (const [pid, startedAt] of this.#signalledGroup)
        if (now.get(pid) === startedAt && (pid !== child || (!ended && !this.#commandHadTerm)))
          send(pid);
    } else if (!ended) {
      if (signal === 'SIGTERM') this.#commandHadTerm = true;
      send(to === 'group' ? -child : child);
    } else if (to === 'group' && this.#processes.groupAlive()) send(-child);
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
      this.#log('error', `Could not kill processes ${remaining}`);
    this.#unkillable = remaining;
    this.#onEvent({ kind: 'swept' });
  }

  async #record(verdict: EndRecord): Promise<void> {
    this.#recorded = { verdict, logTruncated: this.#logTruncated };
    const { marker, terminationLog = existsSync(TERMINATION_LOG) ? TERMINATION_LOG : undefined } =
      this.#options;
    const job = this.#takesJobs
      ? {
          job: jobRecord(this.#job.state, {
            busyWhenSignalled: this.#busyWhenSignalled === true,
            finishedJob: this.#kind.stop.finishesJob && this.#state.end?.code === 0,
          }),
        }
      : {};
    const text = markerText({
      ...verdict,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt ?? new Date().toISOString(),
      ...job,
      ...(this.#logTruncated ? { logTruncated: true } : {}),
    });
    const written = [this.#startNoted];
    if (marker !== undefined)
      written.push(this.#writing('marker', writeEndRecord(marker, text, this.#pending)));
    if (terminationLog !== undefined)
      written.push(
        this.#writing(
          'termination message',
          writeTerminationMessage(terminationLog, text, this.#pending),
        ),
      );
    await Promise.all(written);
  }

  /** Writes the record again if the log was truncated after the record was written. */
  async #recordTruncation(): Promise<void> {
    const { verdict, logTruncated } = this.#recorded ?? {};
    if (verdict !== undefined && this.#logTruncated && logTruncated === false)
      await this.#record(verdict);
  }

  async #noteStart(startedAt: string): Promise<void> {
    const { startFile } = this.#options;
    if (startFile !== undefined)
      await this.#writing(
        'start note',
        writeEndRecord(startFile, `${JSON.stringify({ startedAt })}\n`, this.#pending),
      );
  }

  async #writing(what: string, write: Promise<void>): Promise<void> {
    await write.catch((error: unknown) =>
      this.#log('error', `failed to write the ${what}: ${(error as Error).message}`),
    );
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
        this.#log('error', `Could not start the cleanup command: ${message}`);
        this.#onEvent({ kind: 'cleanupEnded' });
      },
      exited: ({ code, signal: by }) => {
        if (code !== 0) this.#log('error', `Cleanup command ended with ${by ?? `status ${code}`}`);
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
    await outputDrained(this.#output, this.#file ?? this.#stdout);
    await this.#file?.drained();
    await this.#recordTruncation();
    await Promise.all([this.#stdout.drained(), this.#stderr.drained()]);
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
      this.#log('error', `Could not take the snapshot of SHARED_DIR: ${(error as Error).message}`);
    }
  }

  async #giveUp({ status, unrecorded }: SupervisorAction & { kind: 'abandon' }): Promise<void> {
    this.#finished.abort();
    if (unrecorded !== undefined && !this.#pending.any)
      await withTimeout(LAST_MOMENT_MS, this.#record(unrecorded));
    this.#processes.killAll();
    await withTimeout(
      LAST_MOMENT_MS,
      Promise.all([this.#removeTemporary(), this.#stderr.drained()]).then(() =>
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
