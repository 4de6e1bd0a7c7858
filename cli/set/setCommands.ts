/** Options and help of `holdfast set …`. */
import type { Command } from 'commander';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseLimit, warn, withSession, type CommandContext } from '../shared/commandContext.ts';
import { forEachId } from '../shared/forEachId.ts';
import { addGetCommand } from '../shared/getCommand.ts';
import { CliError } from '../shared/exit.ts';
import { addWatchOptions, printOrWatch, type WatchFlags } from '../shared/watch.ts';
import { addWebOption, openList, type WebFlag } from '../shared/web.ts';

/** Adds the commands. Each opens a session and closes it. */
export function addSetCommands(program: Command, context: CommandContext): void {
  const set = program
    .command('set')
    .description('Apply, list, scale, pause and delete sets of runners');
  addApply(set, context);
  addList(set, context);
  addGet(set, context);
  addScale(set, context);
  addPause(set, context);
  addHold(set, context);
  addDelete(set, context);
  addSchema(set, context);
}

function addApply(set: Command, context: CommandContext): void {
  const command = set
    .command('apply')
    .description('Create or update sets from a file')
    .requiredOption('-f, --file <path>', 'YAML or JSON file with sets; - for standard input')
    .option('--dry-run', 'Show what would change without changing it')
    .addHelpText('after', APPLY_HELP)
    .action(async (flags: { file: string; dryRun?: boolean }) => {
      const [
        { readFileText, displayPath: shownPath },
        { readSetDocuments },
        { admitSets },
        { applySets },
      ] = await Promise.all([
        import('../runner/runnerFlags.ts'),
        import('./setDocuments.ts'),
        import('./setAdmission.ts'),
        import('./setApply.ts'),
      ]);
      const shown = shownPath(flags.file);
      const documents = admitSets(readSetDocuments(readFileText(flags.file), shown), shown);
      for (const { warnings, input } of documents)
        warn(context, warnings, input.template, input.name);
      await withSession(command, context, async (session) => {
        context.exit(
          await applySets(session, context.output, documents, { dryRun: flags.dryRun === true }),
        );
      });
    });
}

function addList(set: Command, context: CommandContext): void {
  const command = addWebOption(addWatchOptions(set.command('list')))
    .description('List sets, by name')
    .option('--all', 'Include ended sets')
    .option('--limit <n>', 'Maximum number to list', '200')
    .addHelpText(
      'after',
      '\nIf no worker answers for a set, the list shows what Temporal knows.\n\nExample:\n  $ holdfast set list --json',
    )
    .action(async (flags: WatchFlags & WebFlag & { limit: string; all?: boolean }) => {
      const limit = parseLimit(flags.limit);
      const { listSets, setsQuery } = await import('./setList.ts');
      await withSession(command, context, async (session) => {
        if (flags.web === true) return await openList(session, context.output, setsQuery(flags));
        await printOrWatch(context.output, flags, (output) =>
          listSets(session, output, flags, limit),
        );
      });
    });
}

function addGet(set: Command, context: CommandContext): void {
  addGetCommand(set, context, {
    argument: '<name...>',
    description: 'Show the runners, jobs and waits of sets',
    help: '\nExample:\n  $ holdfast set get linux',
    load: async () => ({
      kind: (await import('../shared/resourceKind.ts')).SET,
      read: (await import('./setGet.ts')).getSet,
    }),
  });
}

function addScale(set: Command, context: CommandContext): void {
  const command = set
    .command('scale <name>')
    .description('Change the size of a set until the next "apply"')
    .option('--replicas <n>', 'Fixed number of runners')
    .option('--min-idle <n>', 'Number of idle runners to keep ready')
    .option('--max <n>', 'Maximum number of runners')
    .addHelpText(
      'after',
      '\nFor a set that follows demand, a bound that is not given stays unchanged.\n\nExamples:\n  $ holdfast set scale static --replicas 5\n  $ holdfast set scale linux --min-idle 2 --max 50',
    )
    .action(async (name: string, flags: { replicas?: string; minIdle?: string; max?: string }) => {
      const { replicas, minIdle, max } = flags;
      if (replicas === undefined && minIdle === undefined && max === undefined)
        throw new CliError(
          'usage',
          'give --replicas for a fixed size, or --min-idle and --max for a size that follows demand',
        );
      if (replicas !== undefined && (minIdle !== undefined || max !== undefined))
        throw new CliError(
          'usage',
          '--replicas: must be used without --min-idle and --max; a set has a fixed size, or follows demand',
        );
      const number = (option: string, text: string | undefined): number | undefined =>
        text === undefined ? undefined : whole(option, text);
      const scale = omitUndefined({
        replicas: number('--replicas', replicas),
        minIdle: number('--min-idle', minIdle),
        max: number('--max', max),
      });
      const { scaleSet } = await import('./setChange.ts');
      await withSession(command, context, (session) =>
        scaleSet(session, context.output, name, scale),
      );
    });
}

function addPause(set: Command, context: CommandContext): void {
  const pause = set
    .command('pause <name...>')
    .description('Start and drain no runners; running ones continue')
    .option('--reason <text>', 'Reason shown with the sets')
    .addHelpText('after', '\nExample:\n  $ holdfast set pause linux --reason "GitHub is down"')
    .action(async (names: string[], { reason }: { reason?: string }) => {
      const { pauseSet } = await import('./setChange.ts');
      await withSession(pause, context, async (session) =>
        context.exit(
          await forEachId(context.output, 'sets', names, (name) => pauseSet(session, name, reason)),
        ),
      );
    });
  const resume = set
    .command('resume <name...>')
    .description('Resume sets that were paused, or stopped because runners failed')
    .addHelpText('after', '\nExample:\n  $ holdfast set resume linux')
    .action(async (names: string[]) => {
      const { resumeSet } = await import('./setChange.ts');
      await withSession(resume, context, async (session) =>
        context.exit(
          await forEachId(context.output, 'sets', names, (name) => resumeSet(session, name)),
        ),
      );
    });
}

function addHold(set: Command, context: CommandContext): void {
  const command = set
    .command('hold <name> <runner>')
    .description('Exclude a runner from scale-downs and rollouts')
    .option('--release', 'Include the runner again')
    .addHelpText(
      'after',
      '\nGive the ID of the runner, or its name at the CI server. A hold ends with the runner.\n\nExamples:\n  $ holdfast set hold linux runner-linux-x1k3q9zz07\n  $ holdfast set hold linux runner-linux-x1k3q9zz07 --release',
    )
    .action(async (name: string, runner: string, { release }: { release?: boolean }) => {
      const { holdRunner } = await import('./setChange.ts');
      await withSession(command, context, (session) =>
        holdRunner(session, context.output, name, runner, { release: release === true }),
      );
    });
}

function addDelete(set: Command, context: CommandContext): void {
  const command = set
    .command('delete <name...>')
    .alias('drain')
    .description('Drain the runners of sets, then end the sets')
    .option('--wait', 'Wait until the sets have ended')
    .option(
      '-y, --yes',
      'Skip the confirmation for more than 10 runners, or when no worker answers',
    )
    .option('--reason <text>', 'Reason shown with the sets and their runners')
    .addHelpText(
      'after',
      '\nRunning jobs may finish. Held runners are drained too. The volumes of slots are kept. To keep an empty set instead: holdfast set scale NAME --replicas 0\n\nExample:\n  $ holdfast set delete linux --wait',
    )
    .action(async (names: string[], flags: { wait?: boolean; yes?: boolean; reason?: string }) => {
      const { deleteSet } = await import('./setChange.ts');
      await withSession(command, context, async (session) => {
        context.exit(
          await forEachId(
            context.output,
            'sets',
            names,
            (name) => deleteSet(session, context.output, name, flags),
            1,
          ),
        );
      });
    });
}

function addSchema(set: Command, { output }: CommandContext): void {
  set
    .command('schema')
    .description('Print the JSON Schema of a file of sets, for editors')
    .addHelpText('after', '\nExample:\n  $ holdfast set schema > sets.schema.json')
    .action(async () =>
      (await import('../installation/jsonSchemas.ts')).printJsonSchema(output, 'Runner sets'),
    );
}

function whole(option: string, text: string, least = 0): number {
  if (!/^\d{1,6}$/.test(text) || Number(text) < least)
    throw new CliError(
      'usage',
      `${option}: "${text}" must be a whole number from ${least} to 999999`,
    );
  return Number(text);
}

const APPLY_HELP = `
A set has a name, a template (the fields of "holdfast runner start -f") and a size: replicas, or minIdle and max. See docs/runner-sets.md for all
fields. The file is validated before anything is applied. Sets that the file does not contain are never changed. If the file does not set "holds" or
"paused", they stay unchanged.

Exit status 1: some sets could not be applied; the others were.

Examples:
  $ holdfast set apply -f sets.yaml --dry-run
  $ holdfast set apply -f sets.yaml
  $ echo '{"name": "linux", "minIdle": 1, "max": 20, "template": {"organization": "acme", "labels": ["linux"]}}' | holdfast set apply -f -`;
