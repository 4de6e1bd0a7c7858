import type { RunnerLogSigns } from '../../core/domain/runnerKinds/runnerKind.ts';
import type { JobSignal } from './jobState.ts';

/** A line longer than this tells nothing, in bytes: the runner's own lines are short. */
const MAX_LINE = 4096;

/** Reads a runner's log as it passes by. */
export class RunnerLog {
  readonly #signs: RunnerLogSigns;
  #line = '';

  constructor(signs: RunnerLogSigns) {
    this.#signs = signs;
  }

  /** @returns what the lines that these bytes complete tell, in order */
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
