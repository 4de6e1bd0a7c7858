/** `holdfast decommission`: its options and help. */
import type { Command } from 'commander';
import { withSession, type CommandContext } from '../shared/commandContext.ts';

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
Jobs that run may finish, jobs of several steps too: those are only waited for. The workers have to run meanwhile. A worker that starts makes the Schedule
anew. Interrupted, it can be said again.

Example:
  $ holdfast decommission --task-queue holdfast --yes`;
