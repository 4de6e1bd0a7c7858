/** Context of commands, and their session with Temporal. */
import type { Command } from 'commander';
import { plaintextWarnings } from '../../core/input/plaintext.ts';
import { CODEC_KEY_FILE } from '../../worker/codec/codecKeyFile.ts';
import { CliError } from './exit.ts';
import type { Output, Terminal } from './output.ts';
import type { ConnectionFlags, Session } from './session.ts';

/** Context that all commands share. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly output: Output;
  /** Receives the exit status. */
  readonly exit: (status: number) => void;
}

/**
 * Prints warnings about an input, including values of variables that are sent to Temporal in clear
 * text.
 * @param of - name of the input, if there are several
 */
export function warn(
  { output, terminal }: CommandContext,
  warnings: readonly string[],
  input: Parameters<typeof plaintextWarnings>[0],
  of = '',
): void {
  const inClear = terminal.env[CODEC_KEY_FILE] ? [] : plaintextWarnings(input);
  for (const warning of [...warnings, ...inClear])
    output.note('warning', `warning: ${of === '' ? '' : `${of}: `}${warning}`);
}

/**
 * Parses the value of a list's option `--limit`.
 * @throws CliError `usage`
 */
export function parseLimit(limit: string): number {
  return parseCount('--limit', limit);
}

/** Parses the value of an option that is a count. @throws CliError `usage` */
export function parseCount(option: string, value: string): number {
  if (!/^[1-9]\d{0,5}$/.test(value))
    throw new CliError('usage', `${option}: "${value}" must be a number from 1 to 999999`);
  return Number(value);
}

/** Opens a session for one command and closes it afterwards. Imports the Temporal SDK on demand. */
export async function withSession(
  command: Command,
  { terminal, output }: CommandContext,
  use: (session: Session) => Promise<void>,
): Promise<void> {
  const { Session } = await import('./session.ts');
  const session = await Session.open(command.optsWithGlobals<ConnectionFlags>(), terminal.env, {
    onProblem: (message) => output.note('warning', `warning: ${message}`),
  });
  try {
    await use(session);
  } finally {
    await session.close();
  }
}
