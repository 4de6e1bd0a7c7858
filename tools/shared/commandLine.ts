/** Shared by the command-line tools: help, option values, progress and error output. */
import { Command, InvalidArgumentError } from 'commander';
import { continueAfterPipeClosed } from '../../cli/shared/closedPipe.ts';

/**
 * Creates the command of an npm script. Its `--help` lists every option with its default. Unknown
 * options and superfluous arguments are errors that point to `--help`.
 * @param invocation - what a user types before the options, such as `npm run fuzz --`
 */
export function createCommand(invocation: string, description: string): Command {
  return new Command(invocation)
    .description(description)
    .showHelpAfterError(`"${invocation} --help" lists the options`);
}

/** Parses the value of an option as a whole number. */
export function wholeNumber({
  min,
  max = Number.MAX_SAFE_INTEGER,
}: {
  readonly min: number;
  readonly max?: number;
}): (text: string) => number {
  const range = max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `${min} to ${max}`;
  return (text) => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!Number.isInteger(value) || value < min || value > max)
      throw new InvalidArgumentError(`It must be a whole number (${range}).`);
    return value;
  };
}

/** Parses the value of an option as a TCP port. */
export const tcpPort = wholeNumber({ min: 1, max: 65_535 });

/** Returns a parser for an option that can be repeated and has a fixed set of values. */
export function repeated<T extends string>(
  values: readonly T[],
): (text: string, previous: readonly T[] | undefined) => readonly T[] {
  return (text, previous = []) => {
    const value = values.find((each) => each === text);
    if (value === undefined)
      throw new InvalidArgumentError(`It must be one of: ${values.join('; ')}.`);
    return [...previous, value];
  };
}

/** Returns a function that writes lines to stderr, each with the seconds since this call. */
export function startProgress(): (line: string) => void {
  const startedAt = performance.now();
  return (line) => {
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6);
    process.stderr.write(`[${seconds} s] ${line}\n`);
  };
}

/**
 * Runs the command with the arguments of this process. An error is printed with its cause, and sets
 * the exit status to 1. A reader that closes the pipe early (`| head`) changes neither.
 * @param options.causeStack - whether the stack of the cause is printed too
 */
export async function runCommand(
  command: Command,
  { causeStack = false }: { readonly causeStack?: boolean } = {},
): Promise<void> {
  continueAfterPipeClosed(process.stdout);
  continueAfterPipeClosed(process.stderr);
  try {
    await command.parseAsync();
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? `: ${describeCause(cause, causeStack)}` : '';
    process.stderr.write(`error: ${message}${reason}\n`);
    process.exitCode = 1;
  }
}

function describeCause({ message, stack }: Error, withStack: boolean): string {
  return withStack ? (stack ?? message) : message;
}
