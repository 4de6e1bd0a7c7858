/** `holdfast decommission`: its options and help. */
import type { Command } from 'commander';
import { withSession, type CommandContext } from '../shared/commandContext.ts';

/** Adds `holdfast decommission` to the program. */
export function addDecommissionCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('decommission')
    .description('Drain and end everything on a task queue before its workers are removed')
    .option('-y, --yes', 'Skip the confirmation')
    .option('--reason <text>', 'Reason shown with the sets and runners')
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
Deletes the sets, drains all other runners, deletes the Schedule of the sweep, and waits until nothing runs. Running jobs finish. The workers must
keep running meanwhile; a worker that starts creates the Schedule again. If interrupted, run it again: the command is idempotent.

Example:
  $ holdfast decommission --task-queue holdfast --yes`;
