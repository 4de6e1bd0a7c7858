import type { Readable } from 'node:stream';
import type { JobHooks } from './jobHooks.ts';
import { type JobSignal, type JobState, jobStateAfter, INITIAL } from './jobState.ts';
import type { Output } from '../records/output.ts';
import type { RunnerLog } from './runnerLog.ts';

/** The runner reports its job's result after the line that says it has ended; a signal would cut that short. In ms. */
const REPORT_MS = 5000;

/** Watches a CI runner's log and hooks, for the probes and for a drain that waits for the job's end. */
export class JobWatch {
  state: JobState = INITIAL;
  readonly #ended: () => void;
  readonly #changed: () => void;
  #settle: NodeJS.Timeout | undefined;

  /**
   * @param ended the job is over and reported, and no other has started since
   * @param changed {@link state} is another one
   */
  constructor(ended: () => void, changed: () => void) {
    this.#ended = ended;
    this.#changed = changed;
  }

  /** Passes the runner's output on, byte for byte and no faster than it is taken. @returns when everybody has closed it, and all is written */
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

  record(sign: JobSignal): void {
    this.state = jobStateAfter(this.state, sign);
    this.#changed();
    if (this.state.busy) clearTimeout(this.#settle);
    // The hook alone does not tell that the job is reported: a runner that is drained then ends by itself, or at the drain's timeout.
    else if (sign === 'logEnded') this.#settle = setTimeout(this.#ended, REPORT_MS);
  }
}
