/** Where a command's results go: text for people, or one JSON document on stdout and errors as JSON on stderr. */
import { CliError, EXIT } from './exit.ts';
import { printable } from '../../../core/domain/shownText.ts';
import { cleanDeep } from './text.ts';
import { fieldText } from '../runner/runnerFlags.ts';

/** What a command needs of its process; tests hand in their own. */
export interface Terminal {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A person can answer questions. */
  readonly interactive: boolean;
}

interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Writes results in the form that was asked for. Lines given to it are cleaned of control characters, one by one. */
export class Output {
  readonly json: boolean;
  readonly terminal: Terminal;

  constructor(terminal: Terminal, json: boolean) {
    this.terminal = terminal;
    this.json = json;
  }

  /** The command's result: `document` with --json, else `lines`. Call it once. */
  result(document: unknown, lines: readonly string[]): void {
    if (this.json) this.terminal.stdout.write(`${JSON.stringify(cleanDeep(document))}\n`);
    else for (const line of lines) this.line(line);
  }

  /** A line of a result for people; nothing with --json. */
  line(text: string): void {
    // A table's own line breaks stay; its cells were cleaned one by one.
    if (!this.json) this.terminal.stdout.write(`${text.split('\n').map(cleanLine).join('\n')}\n`);
  }

  /** Progress or a warning: text on stderr, or with --json an object on one line of stderr. */
  note(event: string, text: string, more: Readonly<Record<string, unknown>> = {}): void {
    if (this.json) this.terminal.stderr.write(`${JSON.stringify(cleanDeep({ event, message: text, ...more }))}\n`);
    else this.terminal.stderr.write(`${printable(text)}\n`);
  }

  /** Prints an error and gives the status to exit with. */
  error(error: unknown): number {
    const known = error instanceof CliError ? error : new CliError('failed', error instanceof Error ? error.message : String(error));
    if (this.json) {
      const { code, message, fields } = known;
      this.terminal.stderr.write(`${JSON.stringify({ error: cleanDeep({ code, message, ...(fields ? { fields } : {}) }) })}\n`);
    } else {
      this.terminal.stderr.write(`error: ${printable(known.message)}\n`);
      for (const field of known.fields ?? []) this.terminal.stderr.write(`  ${printable(fieldText(field))}\n`);
    }
    return known.exitStatus ?? EXIT.failed;
  }
}

/** Like {@link printable}, but keeps the spaces that align columns. */
const cleanLine = (line: string): string => line.split(/( +)/).map((part) => (/^ +$/.test(part) ? part : printable(part))).join('').trimEnd();
