/** Options and help of `holdfast top`. */
import type { Command } from 'commander';
import { parseLimit, withSession, type CommandContext } from '../shared/commandContext.ts';
import { intervalOption, printOrWatch } from '../shared/watch.ts';

/** Adds `holdfast top` to the program. */
export function addTopCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('top')
    .description('Show sets, runners and jobs; on a terminal, until Ctrl-C')
    .addOption(intervalOption('On a terminal: time between refreshes', '5s'))
    .option('--once', 'Show once, even on a terminal')
    .option('--limit <n>', 'Maximum number of sets, runners and jobs each', '200')
    .addHelpText(
      'after',
      '\nIt counts the runners and jobs that failed or errored within the last hour. Lists may be a second old.\n\nExamples:\n  $ holdfast top\n  $ holdfast top --output json',
    )
    .action(
      async ({
        interval,
        once = false,
        limit: text,
      }: {
        interval: number;
        once?: boolean;
        limit: string;
      }) => {
        const limit = parseLimit(text);
        const { showTop } = await import('./top.ts');
        const { output } = context;
        const watch =
          !once && !output.json && output.form !== 'name' && output.terminal.stdout.isTTY === true;
        await withSession(command, context, (session) =>
          printOrWatch(output, { watch, interval }, (frame) => showTop(session, frame, limit)),
        );
      },
    );
}
