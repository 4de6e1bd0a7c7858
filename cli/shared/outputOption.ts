/** Option `--output` of every command. */
import type { Command } from 'commander';
import { CliError } from './exit.ts';
import { OUTPUT_FORMS, type Output, type OutputForm } from './output.ts';

/**
 * Returns the output form that the arguments select. They are read before parsing, so that parse
 * errors use it too. Arguments after `--` are not options.
 */
export function outputForm(args: readonly string[]): OutputForm {
  const end = args.indexOf('--');
  const own = end < 0 ? args : args.slice(0, end);
  if (own.includes('--json')) return 'json';
  const asked = own
    .map(
      (arg, index) =>
        /^(?:--output=|-o=?)(.+)$/.exec(arg)?.[1] ??
        (arg === '--output' || arg === '-o' ? own[index + 1] : undefined),
    )
    .findLast((form) => form !== undefined);
  return OUTPUT_FORMS.find((form) => form === asked) ?? 'text';
}

/** Groups whose commands print objects with IDs, and the exceptions among their commands. */
const WITH_IDS = ['runner', 'set', 'job'];
const WITHOUT = ['schema', 'logs'];

/**
 * Rejects `--output name` for a command that prints no IDs, before it runs.
 * @throws CliError `usage`
 */
export function refuseNames({ form }: Output, command: Command): void {
  if (form !== 'name') return;
  const group = command.parent?.name() ?? '';
  if (
    command.name() === 'run' ||
    command.name() === 'top' ||
    (WITH_IDS.includes(group) && !WITHOUT.includes(command.name()))
  )
    return;
  throw new CliError(
    'usage',
    `--output name: "${group === 'holdfast' ? '' : `${group} `}${command.name()}" has no ids to print`,
  );
}
