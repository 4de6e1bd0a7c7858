/** Options and help of `holdfast version`. */
import type { Command } from 'commander';
import type { CommandContext } from '../shared/commandContext.ts';

/** Adds `holdfast version` to the program. It does not connect to Temporal. */
export function addVersionCommand(program: Command, { output }: CommandContext): void {
  program
    .command('version')
    .description('Print the version, the commit and the runtime')
    .addHelpText('after', '\nExample:\n  $ holdfast version --json')
    .action(async () => (await import('./version.ts')).printVersion(output));
}
