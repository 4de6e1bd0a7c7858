/**
 * Implements `--watch`: repeats the output of a command. On a terminal it is redrawn, otherwise it
 * is printed when it changes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Option, type Command } from 'commander';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseDuration } from '../../core/domain/duration.ts';
import { CliError } from './exit.ts';
import { Output } from './output.ts';

/** Options that {@link addWatchOptions} adds. */
export interface WatchFlags {
  readonly watch?: boolean;
  /** Interval between two frames (ms). */
  readonly interval: number;
}

/**
 * Prints one frame.
 * @returns whether it was the last one, because the object has ended
 */
export type Show = (output: Output) => Promise<boolean | void>;

/** Waits for the next frame. */
export type Pause = () => Promise<unknown>;

const MIN_MS = 500;
const MAX_MS = 3_600_000;

/** Adds `--watch` and `--interval` to a command. */
export function addWatchOptions(command: Command): Command {
  return command
    .option('-w, --watch', 'Refresh until Ctrl-C, or until everything shown has ended')
    .addOption(intervalOption('With --watch: time between refreshes', '2s'));
}

/** Returns the option `--interval`, whose value is parsed to ms. */
export function intervalOption(description: string, preset: string): Option {
  return new Option('--interval <duration>', description)
    .argParser(readInterval)
    .default(readInterval(preset), preset);
}

/**
 * Rejects options that cannot be combined with `--watch`.
 * @throws CliError `usage`
 */
function readInterval(interval: string): number {
  const ms = parseDuration(interval);
  if (ms === undefined || ms < MIN_MS || ms > MAX_MS)
    throw new CliError(
      'usage',
      `--interval: "${interval}" must be a duration from 500ms to 1h, such as 5s`,
    );
  return ms;
}

/** Prints one frame, or with `--watch` frames until the object has ended. */
export async function printOrWatch(
  output: Output,
  { watch = false, interval }: WatchFlags,
  show: Show,
): Promise<void> {
  if (watch) await renderLoop(output, show, () => delay(interval));
  else await show(output);
}

/**
 * Prints frames until the last one, or until no one reads them any more.
 * @throws the error of the first frame, and any error that is not a connection loss
 */
export async function renderLoop(output: Output, show: Show, pause: Pause): Promise<void> {
  const screen =
    output.form !== 'json' && output.form !== 'yaml' && output.terminal.stdout.isTTY === true;
  let last: string | undefined;
  let lost: string | undefined;
  for (;;) {
    const frame = new Frame(output);
    let over: boolean | void = false;
    try {
      over = await show(frame);
      lost = undefined;
    } catch (error) {
      if (last === undefined || !(error instanceof CliError && error.code === 'unreachable'))
        throw error;
      if (lost !== error.message) output.note('unreachable', error.message);
      lost = error.message;
      await pause();
      continue;
    }
    if (screen)
      output.terminal.stdout.write(
        fitToScreen(`${frame.written.out}${frame.written.err}`, output.terminal.stdout),
      );
    else if (frame.key !== last) {
      if (output.form === 'yaml') output.terminal.stdout.write('---\n');
      else if (last !== undefined && !output.json) output.terminal.stdout.write('\n');
      output.terminal.stdout.write(frame.written.out);
      output.terminal.stderr.write(frame.written.err);
    }
    last = frame.key;
    if (over === true) return;
    await pause();
    if (output.isReaderGone) return;
  }
}

/**
 * Output of one frame, and its document. Documents are compared to detect a change, because texts
 * contain ages, which always differ.
 */
class Frame extends Output {
  document: unknown;
  readonly written: { readonly out: string; readonly err: string };

  constructor({ terminal, form }: Output) {
    const written = { out: '', err: '' };
    const size = omitUndefined({ isTTY: terminal.stdout.isTTY, columns: terminal.stdout.columns });
    super(
      {
        ...terminal,
        stdout: { ...size, write: (text: string) => void (written.out += text) },
        stderr: { ...size, write: (text: string) => void (written.err += text) },
      },
      form,
    );
    this.written = written;
  }

  override result(document: unknown, lines: readonly string[]): void {
    this.document = document;
    super.result(document, lines);
  }

  get key(): string {
    return JSON.stringify(this.document) + this.written.err;
  }
}

/**
 * Returns the text that draws a frame from the top of the terminal. Long lines and further lines
 * are cut, so that each frame replaces the previous one.
 */
function fitToScreen(text: string, { columns, rows }: Output['terminal']['stdout']): string {
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) =>
      line.length < (columns || 80) ? line : `${line.slice(0, (columns || 80) - 2)}…`,
    );
  const max = (rows || 24) - 1;
  const shown =
    lines.length <= max
      ? lines
      : [...lines.slice(0, max - 1), `… and ${lines.length - max + 1} more lines`];
  return `\u001B[H\u001B[2J${shown.join('\n')}\n`;
}
