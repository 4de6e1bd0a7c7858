/** Defines `holdfast help [command...]`, which also finds commands of a group. */
import type { Command } from 'commander';

/** Replaces commander's own help command, which shows the help of a group for `help runner get`. */
export function addHelpCommand(program: Command): void {
  program.helpCommand(false);
  program
    .command('help [command...]')
    .description('Show the help of a command')
    .addHelpText('after', '\nExample:\n  $ holdfast help runner get')
    .action((names: string[]) => find(program, names).help());
}

function find(command: Command, [name, ...rest]: readonly string[]): Command {
  if (name === undefined) return command;
  const found = command.commands.find(
    (each) => each.name() === name || each.aliases().includes(name),
  );
  if (found === undefined) return command.error(`error: unknown command '${name}'`);
  return find(found, rest);
}
