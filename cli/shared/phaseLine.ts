/** Line that shows the progress of a runner or job. */
import type { JobLogLine, RunnerStatus } from '../../core/contract/index.ts';
import type { Output } from './output.ts';
import { stripControlCharacters, truncate } from '../../core/domain/displayText.ts';
import { formatAge } from './text.ts';

/** State at one moment. `status` is absent while no worker answers. */
export interface Observation {
  readonly phase: string;
  readonly status?: Partial<RunnerStatus>;
  /** Log of a job. */
  readonly log?: readonly JobLogLine[];
  /** Reason why the state is incomplete. */
  readonly problem?: string;
}

/** Returns the text of the line for a runner, without its ID and times. */
export function describeObservation({ phase, status, problem }: Observation): string {
  return [
    phase,
    status?.runnerName && `runner ${status.runnerName}`,
    status?.job && `job ${status.job}`,
    status?.cancel && `cancel ${status.cancel.mode}`,
    status?.waitingFor &&
      `waits for ${status.waitingFor}${status.waitingUntil ? ` until ${status.waitingUntil}` : ''}`,
    problem && `(${problem})`,
  ]
    .filter(Boolean)
    .map((part) => stripControlCharacters(String(part)))
    .join('  ');
}

/**
 * Shows progress. On a terminal it rewrites one line, otherwise it prints a line for each change.
 * With `--json` it prints an object for each change on stderr.
 */
export class ProgressLine {
  private readonly output: Output;
  private readonly id: string;
  private readonly startedAt: number;
  private readonly live: boolean;
  private text: string | undefined;
  private drawn = false;
  private printed = 0;

  /**
   * Creates the line.
   * @param startedAt - start of the elapsed time (ms since the epoch)
   */
  constructor(output: Output, id: string, startedAt: number) {
    this.output = output;
    this.id = stripControlCharacters(id);
    this.startedAt = startedAt;
    this.live = !output.json && output.terminal.stdout.isTTY === true;
  }

  show({ log, ...seen }: Observation, now: number = Date.now()): void {
    this.printLog(log);
    const text = describeObservation(seen);
    const changed = text !== this.text;
    this.text = text;
    if (this.live) this.draw(now);
    else if (changed && this.output.json)
      this.output.note('phase', `${this.id}  ${text}`, {
        at: new Date(now).toISOString(),
        id: this.id,
        ...seen,
      });
    else if (changed) this.output.line(`${new Date(now).toISOString()}  ${this.id}  ${text}`);
  }

  /**
   * Prints the lines of a log that have not been printed yet.
   * @param log - complete log
   */
  printLog(log: readonly JobLogLine[] = []): void {
    for (const { at, message } of log.slice(this.printed))
      this.message('log', message, Date.parse(at));
    this.printed = Math.max(this.printed, log.length);
  }

  /** Prints a message that stays on the screen. */
  message(event: string, text: string, now: number = Date.now()): void {
    this.erase();
    if (this.output.json)
      this.output.note(event, text, { at: new Date(now).toISOString(), id: this.id });
    else this.output.line(this.live ? text : `${new Date(now).toISOString()}  ${this.id}  ${text}`);
    if (this.live && this.text !== undefined) this.draw(now);
  }

  /** Prints a line of the command's own output unchanged. */
  print(text: string): void {
    this.erase();
    if (this.output.json) this.output.note('output', text, { id: this.id });
    else this.output.line(text);
    if (this.live && this.text !== undefined) this.draw(Date.now());
  }

  /** Leaves the last line on the screen. */
  end(): void {
    if (this.drawn) this.output.terminal.stdout.write('\n');
    this.drawn = false;
    this.text = undefined;
  }

  private draw(now: number): void {
    const line = `${this.id}  ${formatAge(now - this.startedAt)}  ${this.text ?? ''}`;
    // A pseudo-terminal without a size reports 0 columns.
    this.output.terminal.stdout.write(
      `\r\u001B[2K${truncate(line, (this.output.terminal.stdout.columns || 80) - 1)}`,
    );
    this.drawn = true;
  }

  private erase(): void {
    if (this.drawn) this.output.terminal.stdout.write('\r\u001B[2K');
    this.drawn = false;
  }
}
