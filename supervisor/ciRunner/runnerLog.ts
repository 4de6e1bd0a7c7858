import type { RunnerLogSigns } from '../../core/domain/runnerKinds/runnerKind.ts';
import type { JobSignal } from './jobState.ts';

/** Maximum length of a line that is parsed (bytes). The runner's own lines are short. */
const MAX_LINE = 4096;

/** Parses a runner's log while it is forwarded. */
export class RunnerLog {
  readonly #signs: RunnerLogSigns;
  #line = '';

  constructor(signs: RunnerLogSigns) {
    this.#signs = signs;
  }

  /**
   * Parses more bytes of the log.
   *
   * @returns the signs in the lines that these bytes complete, in order
   */
  read(bytes: Uint8Array): JobSignal[] {
    const lines = (this.#line + Buffer.from(bytes).toString('latin1')).split('\n');
    this.#line = (lines.pop() ?? '').slice(0, MAX_LINE);
    return lines.flatMap((line) => parseSignal(line.replace(/\r$/, ''), this.#signs) ?? []);
  }
}

function parseSignal(
  line: string,
  { listening, jobStarted, jobEnded }: RunnerLogSigns,
): JobSignal | undefined {
  if (listening.test(line)) return 'logListening';
  if (jobStarted.test(line)) return 'logStarted';
  return jobEnded.test(line) ? 'logEnded' : undefined;
}
