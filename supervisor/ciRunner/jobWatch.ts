import type { Readable } from 'node:stream';
import type { JobHooks } from './jobHooks.ts';
import { type JobSignal, type JobState, jobStateAfter, INITIAL } from './jobState.ts';
import type { Output } from '../records/output.ts';
import type { RunnerLog } from './runnerLog.ts';

/**
 * Time that the runner needs to report the job's result after the log line of its end (ms). A
 * signal during this time would interrupt the report.
 */
const REPORT_MS = 5000;

/**
 * Watches the log and the hooks of a CI runner, for the probes and for a drain that waits for the
 * job's end.
 */
export class JobWatch {
  state: JobState = INITIAL;
  readonly #ended: () => void;
  readonly #changed: () => void;
  #ignoresEnd = false;
  #settle: NodeJS.Timeout | undefined;

  /**
   * @param ended - called when the job has ended and been reported, and no other has started since
   * @param changed - called when {@link state} has changed
   */
  constructor(ended: () => void, changed: () => void) {
    this.#ended = ended;
    this.#changed = changed;
  }

  /**
   * Forwards the runner's output, byte for byte and no faster than it is accepted, and reads its
   * log.
   *
   * @returns when all writers have closed the stream and everything is written
   */
  async follow(stdout: Readable, output: Output, log: RunnerLog): Promise<void> {
    for await (const bytes of stdout as AsyncIterable<Buffer>) {
      for (const sign of log.read(bytes)) this.record(sign);
      await output.write(bytes);
    }
  }

  hooks(hooks: JobHooks, failed: (error: unknown) => void): void {
    hooks.watch(
      (sign) => this.record(sign),
      failed,
      () => !this.state.fromLog,
    );
  }

  /** Whether the runner may still be reporting the result of its last job. */
  get isReporting(): boolean {
    return this.#settle !== undefined;
  }

  /** Ignores the log lines that report the end of a job, from now on. */
  ignoreEnd(): void {
    this.#ignoresEnd = true;
  }

  record(sign: JobSignal): void {
    if (sign === 'logEnded' && this.#ignoresEnd) return;
    this.state = jobStateAfter(this.state, sign);
    this.#changed();
    if (this.state.busy) this.#stopSettling();
    // The hook alone does not show that the job has been reported. Without a log, a draining runner
    // ends by itself or at the drain timeout.
    else if (sign === 'logEnded') this.#settle = setTimeout(() => this.#reported(), REPORT_MS);
  }

  #stopSettling(): void {
    clearTimeout(this.#settle);
    this.#settle = undefined;
  }

  #reported(): void {
    this.#settle = undefined;
    this.#ended();
  }
}
