/** What every command is given, and how it gets to Temporal. */
import type { Command } from 'commander';
import type { Output, Terminal } from './terminal/output.ts';
import type { ConnectionFlags, Session } from './temporal/session.ts';

/** What the commands share. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly output: Output;
  /** Takes the status to exit with. */
  readonly exit: (status: number) => void;
}

/** Opens a session for one command, and closes it. The Temporal SDK is loaded here, not before. */
export async function withSession(command: Command, { terminal, output }: CommandContext, use: (session: Session) => Promise<void>): Promise<void> {
  const { Session } = await import('./temporal/session.ts');
  const session = await Session.open(command.optsWithGlobals<ConnectionFlags>(), terminal.env, { onTrouble: (message) => output.note('warning', `warning: ${message}`) });
  try {
    await use(session);
  } finally {
    await session.close();
  }
}
