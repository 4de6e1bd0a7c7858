/** Options and help of `holdfast why`. */
import type { Command } from 'commander';
import { withSession, type CommandContext } from '../shared/commandContext.ts';
import { EXIT } from '../shared/exit.ts';
import { parseSubject } from './subject.ts';

/** Adds `holdfast why` to the program. */
export function addWhyCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('why <subject>')
    .description('Explain why a job, runner or set waits, or how it ended')
    .option('--labels <list>', 'Labels of the job (runs-on), separated by commas')
    .addHelpText('after', HELP)
    .action(async (subject: string, { labels }: { labels?: string }) => {
      const asked = parseSubject(subject, labels); // rejects invalid usage before connecting to Temporal
      const { why } = await import('./why.ts');
      await withSession(command, context, async (session) => {
        const { output, terminal } = context;
        const hasAnswer = await why(session, output, terminal.env, asked);
        context.exit(hasAnswer ? EXIT.ok : EXIT.notFound);
      });
    });
}

const HELP = `
The subject is the URL of a job or run, the ID of a job, or the name or ID of a set or runner. The command reads what Temporal and the sets of
the task queue know, and reads pods live if this machine reaches the cluster as for "holdfast runner logs". It needs no credential of the CI server.

Give --labels if no set knows the job: the answer then names the set that would serve it, or what each set lacks.

Exit status 0: explained; 3: no such subject, or nothing is known of the job.

Examples:
  $ holdfast why https://github.com/acme/app/actions/runs/1/job/2
  $ holdfast why 2 --labels self-hosted,linux
  $ holdfast why linux
  $ holdfast why runner-linux-x1k3q9zz07 --json`;
