/** `holdfast top`: its options and help. */
import type { Command } from 'commander';
import { parseLimit, withSession, type CommandContext } from '../shared/commandContext.ts';
import { intervalOption, printOrWatch } from '../shared/watch.ts';

/** Adds `holdfast top` to the program. */
export function addTopCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('top')
    .description('sets, runners and jobs at a glance; on a terminal until Ctrl-C, elsewhere once')
    .addOption(intervalOption('on a terminal: time between two looks', '5s'))
    .option('--once', 'once, on a terminal too')
    .option('--limit <n>', 'at most this many sets, runners and jobs each', '200')
    .addHelpText(
      'after',
      '\nRunners and jobs that ended badly within the last hour are counted. What it shows may be a second old.\n\nExamples:\n  $ holdfast top\n  $ holdfast top --output json',
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
