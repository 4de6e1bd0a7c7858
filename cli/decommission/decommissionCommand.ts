/** `holdfast decommission`: its options and help. */
import type { Command } from 'commander';
import { withSession, type CommandContext } from '../shared/commandContext.ts';

/** Adds `holdfast decommission` to the program. */
export function addDecommissionCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('decommission')
    .description(
      'before the workers of a task queue go for good: end its sets, drain its other runners, remove the Schedule of its sweep, and wait until nothing runs',
    )
    .option('-y, --yes', 'do not ask first')
    .option('--reason <text>', 'shown with the sets and runners')
    .addHelpText('after', HELP)
    .action(async (flags: { yes?: boolean; reason?: string }) => {
      const { decommission } = await import('./decommission.ts');
      await withSession(
        command,
        context,
        async (session) => await decommission(session, context.output, flags),
      );
    });
}

const HELP = `
Running jobs may finish, jobs of several steps too: the command only waits for those. The workers must run meanwhile. A worker that starts creates the
Schedule again. If interrupted, run it again.

Example:
  $ holdfast decommission --task-queue holdfast --yes`;
