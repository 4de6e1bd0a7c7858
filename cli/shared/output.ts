/** Output of a command: text, or one document on stdout and errors as JSON on stderr. */
import { stringify } from 'yaml';
import { CliError, EXIT } from './exit.ts';
import { stripControlCharacters } from '../../core/domain/displayText.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { cleanDeep } from './text.ts';
import { formatFieldError } from '../runner/runnerFlags.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Parts of the process that a command uses. Tests replace them. */
export interface Terminal {
  readonly stdout: Stream;
  readonly stderr: Stream;
  /** Whether the reader of `stdout` has closed the pipe. @default never */
  readonly isReaderGone?: () => boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether a person can answer questions. */
  readonly interactive: boolean;
}

interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/**
 * Values of `--output`. `text` is for people, `wide` adds columns, `name` prints one ID per line.
 */
export const OUTPUT_FORMS = ['text', 'wide', 'name', 'json', 'yaml'] as const;
/** One of the {@link OUTPUT_FORMS}. */
export type OutputForm = (typeof OUTPUT_FORMS)[number];

/** Writes results in the requested form. Control characters are removed from each line. */
export class Output {
  readonly form: OutputForm;
  readonly terminal: Terminal;

  constructor(terminal: Terminal, form: OutputForm) {
    this.terminal = terminal;
    this.form = form;
  }

  /** Whether no one reads the result any more. Commands that only print then end. */
  get isReaderGone(): boolean {
    return this.terminal.isReaderGone?.() ?? false;
  }

  /** Whether the result is a JSON or YAML document instead of text. */
  get json(): boolean {
    return this.form === 'json' || this.form === 'yaml';
  }

  /** Whether tables have all their columns. */
  get wide(): boolean {
    return this.form === 'wide';
  }

  /**
   * Prints the result of the command: `document` as JSON or YAML, the IDs in it, or `lines`. Call
   * it once.
   */
  result(document: unknown, lines: readonly string[]): void {
    const { stdout } = this.terminal;
    if (this.form === 'json') stdout.write(`${JSON.stringify(cleanDeep(document))}\n`);
    else if (this.form === 'yaml')
      stdout.write(stringify(cleanDeep(document), { lineWidth: 0, aliasDuplicateObjects: false }));
    else if (this.form === 'name')
      for (const name of namesIn(document)) stdout.write(`${stripControlCharacters(name)}\n`);
    else for (const line of lines) this.line(line);
  }

  /** Prints a line of a result for people. Does nothing in the other forms. */
  line(text: string): void {
    // Keep the line breaks of a table. Its cells contain no control characters.
    if (this.form === 'text' || this.form === 'wide')
      this.terminal.stdout.write(`${text.split('\n').map(cleanLine).join('\n')}\n`);
  }

  /**
   * Prints progress or a warning on stderr: as text, or as a JSON object on one line if the result
   * is a document.
   */
  note(event: string, text: string, more: Readonly<Record<string, unknown>> = {}): void {
    if (this.json)
      this.terminal.stderr.write(
        `${JSON.stringify(cleanDeep({ event, message: text, ...more }))}\n`,
      );
    else this.terminal.stderr.write(`${stripControlCharacters(text)}\n`);
  }

  /**
   * Prints an error.
   * @returns the exit status
   */
  error(error: unknown): number {
    const known = error instanceof CliError ? error : new CliError('failed', errorMessage(error));
    if (this.json) {
      const { code, message, fields } = known;
      this.terminal.stderr.write(
        `${JSON.stringify({ error: cleanDeep({ code, message, ...(fields ? { fields } : {}) }) })}\n`,
      );
    } else {
      this.terminal.stderr.write(`error: ${stripControlCharacters(known.message)}\n`);
      for (const field of known.fields ?? [])
        this.terminal.stderr.write(`  ${stripControlCharacters(formatFieldError(field))}\n`);
    }
    return known.exitStatus ?? EXIT.failed;
  }
}

/** Cleans a line like {@link stripControlCharacters}, but keeps the spaces that align columns. */
const cleanLine = (line: string): string =>
  line
    .split(/( +)/)
    .map((part) => (/^ +$/.test(part) ? part : stripControlCharacters(part)))
    .join('')
    .trimEnd();

/**
 * Returns the ID of a document's object, or the IDs of the listed objects; their names if they have
 * no IDs.
 */
function namesIn(document: unknown): string[] {
  if (!isObject(document)) return [];
  const own = nameOf(document);
  if (own !== undefined) return [own];
  return Object.values(document).flatMap((value) =>
    Array.isArray(value)
      ? value.flatMap((each: unknown) => (isObject(each) ? (nameOf(each) ?? []) : []))
      : [],
  );
}

function nameOf({ id, name }: Readonly<Record<string, unknown>>): string | undefined {
  return [id, name].find((value) => typeof value === 'string');
}
