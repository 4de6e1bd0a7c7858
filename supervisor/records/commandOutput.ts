import type { Readable } from 'node:stream';
import type { RunnerKind } from '../../core/domain/runnerKinds/runnerKind.ts';
import type { OutputMode, OutputPipes } from '../process/child.ts';
import type { Pending } from '../process/pending.ts';
import type { Options } from '../settings/options.ts';
import { eventLog, type Log } from './eventLog.ts';
import { forwardOutput } from './forwardOutput.ts';
import { Output } from './output.ts';
import { outputDrained } from './outputDrained.ts';
import { openOutputSocket, type OutputSocket } from './outputSocket.ts';

/** Output of the command and log of the supervisor, on its own descriptors and in the log file. */
export class CommandOutput {
  /** Writes to the log of the supervisor. */
  readonly log: Log;
  readonly #options: Pick<Options, 'logFile' | 'mergeOutput'>;
  /** Whether the command's standard output is read as the log of a CI runner. */
  readonly #isRead: boolean;
  readonly #pending: Pending;
  readonly #stdout: Output;
  readonly #stderr: Output;
  /** File to which both outputs are copied. */
  #file: Output | undefined;
  /** Socket to which the command writes both outputs, if they are merged. */
  #merged: OutputSocket | undefined;
  #forwarded: Promise<unknown> = Promise.resolve();
  #isTruncated = false;

  constructor(
    options: Pick<Options, 'logFile' | 'mergeOutput'>,
    { log }: Pick<RunnerKind, 'log'>,
    pending: Pending,
  ) {
    this.#options = options;
    this.#isRead = log !== undefined;
    this.#pending = pending;
    this.#stdout = new Output(1, pending);
    this.#stderr = new Output(2, pending);
    this.log = eventLog(this.#stderr);
  }

  /** Whether the log file lacks lines. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** Streams that the command gets. */
  get mode(): OutputMode {
    const { logFile, mergeOutput } = this.#options;
    if (logFile !== undefined) return this.#merged?.forCommand ?? 'both';
    if (this.#isRead) return 'stdout';
    return mergeOutput ? 'merged' : 'nothing';
  }

  /**
   * Opens the log file, if there is one.
   * @param folder - directory of the supervisor
   * @throws Error if it cannot be opened
   */
  async open(folder: string): Promise<void> {
    const { logFile, mergeOutput } = this.#options;
    if (logFile === undefined) return;
    this.#file = await Output.appendingTo(logFile, this.#pending, (error) =>
      this.#onFailure(error),
    );
    for (const output of [this.#stdout, this.#stderr]) output.copyTo(this.#file);
    // Only output that is copied to a file passes through the supervisor. Otherwise the command
    // writes to the supervisor's standard output itself.
    if (mergeOutput && !this.#isRead) await this.#merge(folder);
  }

  async #merge(folder: string): Promise<void> {
    try {
      this.#merged = await openOutputSocket(folder);
    } catch (error) {
      this.log(
        'error',
        `failed to merge the outputs of the command, so their order may change: ${(error as Error).message}`,
      );
    }
  }

  /** Logs the failure once: on a full disk every line fails. */
  #onFailure(error: Error): void {
    if (this.#isTruncated) return;
    this.#isTruncated = true;
    this.log(
      'error',
      `failed to write the log file, which lacks lines from here on: ${error.message}`,
    );
  }

  /**
   * Forwards the output of the started command.
   * @param read - reads and forwards the standard output of a CI runner
   */
  forward(
    { stdout, stderr }: OutputPipes,
    read: (stdout: Readable, output: Output) => Promise<void>,
  ): void {
    this.#merged?.forCommand.destroy();
    this.#forwarded = Promise.all([
      this.#merged && forwardOutput(this.#merged.reader, this.#stdout),
      stdout && (this.#isRead ? read(stdout, this.#stdout) : forwardOutput(stdout, this.#stdout)),
      stderr && forwardOutput(stderr, this.#stderr),
    ]);
  }

  /** Resolves when the output of the ended command is written to the log file. */
  async commandWritten(): Promise<void> {
    await outputDrained(this.#forwarded, this.#file ?? this.#stdout);
    await this.#file?.drained();
  }

  /** Resolves when all output is written. */
  async drained(): Promise<void> {
    await Promise.all([this.#stdout.drained(), this.#stderr.drained()]);
  }

  /** Resolves when the log of the supervisor is written. */
  async logDrained(): Promise<void> {
    await this.#stderr.drained();
  }
}
