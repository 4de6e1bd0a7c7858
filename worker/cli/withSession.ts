import type { Command } from 'commander';
import type { CommandContext } from './runnerCommands.ts';
import type { ConnectionFlags, Session } from './session.ts';

/** Opens a session for one command, and closes it. The Temporal SDK is loaded here, not before. */
export async function withSession(command: Command, { terminal }: CommandContext, use: (session: Session) => Promise<void>): Promise<void> {
  const { Session } = await import('./session.ts');
  const session = await Session.open(command.optsWithGlobals<ConnectionFlags>(), terminal.env);
  try {
    await use(session);
  } finally {
    await session.close();
  }
}
