import type { JobSignal } from './jobState.ts';

/** A line longer than this tells nothing, in bytes: the runner's own lines are short. */
const MAX_LINE = 4096;

/**
 * Reads GitHub's runner's log as it passes by. Its lines are `2024-01-01 00:00:00Z: Listening for Jobs`, `…: Running job: NAME` and
 * `…: Job NAME completed with result: Succeeded` (actions/runner, src/Runner.Listener/JobDispatcher.cs).
 */
export class RunnerLog {
  #line = '';

  /** @returns what the lines that these bytes complete tell, in order */
  read(bytes: Uint8Array): JobSignal[] {
    const lines = (this.#line + Buffer.from(bytes).toString('latin1')).split('\n');
    this.#line = (lines.pop() ?? '').slice(0, MAX_LINE);
    return lines.flatMap((line) => parseSignal(line) ?? []);
  }
}

function parseSignal(line: string): JobSignal | undefined {
  const text = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: (.*?)\r?$/.exec(line)?.[1];
  if (text === undefined) return undefined;
  if (text === 'Listening for Jobs') return 'logListening';
  if (text.startsWith('Running job: ')) return 'logStarted';
  return /^Job .* completed with result: \w+$/.test(text) ? 'logEnded' : undefined;
}
