/** `holdfast set …`: its options and help. */
import type { Command } from 'commander';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { warn, withSession, type CommandContext } from '../shared/commandContext.ts';
import { CliError } from '../shared/exit.ts';
import { addWatchOptions, printOrWatch, type WatchFlags } from '../shared/watch.ts';

/** Adds the commands. Each opens a session of its own and closes it. */
export function addSetCommands(program: Command, context: CommandContext): void {
  const set = program
    .command('set')
    .description('apply, list, look at, scale, pause and delete sets of runners');
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
    .description('bring sets to what a file says: start new ones, change those that run')
    .requiredOption(
      '-f, --file <path>',
      'YAML of one or more documents or with lists of sets, or JSON; - for standard input',
    )
    .option('--dry-run', 'show what would change; change nothing')
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
  const command = addWatchOptions(set.command('list'))
    .description('list the running sets')
    .option('--limit <n>', 'at most this many', '200')
    .addHelpText(
      'after',
      '\nA set that no worker answers for is listed with what Temporal knows of it.\n\nExample:\n  $ holdfast set list --json',
    )
    .action(async (flags: WatchFlags & { limit: string }) => {
      const limit = whole('--limit', flags.limit, 1);
      const { listSets } = await import('./setList.ts');
      await withSession(command, context, (session) =>
        printOrWatch(context.output, flags, (output) => listSets(session, output, limit)),
      );
    });
}

function addGet(set: Command, context: CommandContext): void {
  const command = addWatchOptions(set.command('get <name>'))
    .description('show one set: runners, jobs, why no runner is started, and what it waits for')
    .addHelpText('after', '\nExample:\n  $ holdfast set get linux')
    .action(async (name: string, flags: WatchFlags) => {
      const { getSet } = await import('./setGet.ts');
      await withSession(command, context, (session) =>
        printOrWatch(context.output, flags, (output) => getSet(session, output, name)),
      );
    });
}

function addScale(set: Command, context: CommandContext): void {
  const command = set
    .command('scale <name>')
    .description('give a set another size, until the next "apply" gives it its own again')
    .option('--replicas <n>', 'a fixed number of runners')
    .option('--min-idle <n>', 'idle runners kept ready')
    .option('--max <n>', 'runners at the most')
    .addHelpText(
      'after',
      '\nOf a set that follows demand, the bound that is not given stays as it is.\n\nExamples:\n  $ holdfast set scale static --replicas 5\n  $ holdfast set scale linux --min-idle 2 --max 50',
    )
    .action(async (name: string, flags: { replicas?: string; minIdle?: string; max?: string }) => {
      const { replicas, minIdle, max } = flags;
      if (replicas === undefined && minIdle === undefined && max === undefined)
        throw new CliError(
          'usage',
          'give --replicas for a fixed number, or --min-idle and --max for one that follows demand',
        );
      if (replicas !== undefined && (minIdle !== undefined || max !== undefined))
        throw new CliError(
          'usage',
          '--replicas and --min-idle or --max exclude each other: a set has a fixed number of runners, or follows demand',
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
    .command('pause <name>')
    .description('start no runner and drain none; those that run go on')
    .option('--reason <text>', 'shown with the set')
    .addHelpText('after', '\nExample:\n  $ holdfast set pause linux --reason "GitHub is down"')
    .action(async (name: string, { reason }: { reason?: string }) => {
      const { pauseSet } = await import('./setChange.ts');
      await withSession(pause, context, (session) =>
        pauseSet(session, context.output, name, reason),
      );
    });
  const resume = set
    .command('resume <name>')
    .description(
      'start runners again: after "pause", or after a set stopped by itself because its runners never came up',
    )
    .addHelpText('after', '\nExample:\n  $ holdfast set resume linux')
    .action(async (name: string) => {
      const { resumeSet } = await import('./setChange.ts');
      await withSession(resume, context, (session) => resumeSet(session, context.output, name));
    });
}

function addHold(set: Command, context: CommandContext): void {
  const command = set
    .command('hold <name> <runner>')
    .description(
      'keep one runner of a set from scale-downs and rollouts, until it is released or ends',
    )
    .option('--release', 'let it go again')
    .addHelpText(
      'after',
      '\nThe runner is named by its id, or by its name at the CI server.\n\nExamples:\n  $ holdfast set hold linux runner-linux-x1k3q9zz07\n  $ holdfast set hold linux runner-linux-x1k3q9zz07 --release',
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
    .command('delete <name>')
    .alias('drain')
    .description('drain every runner of a set, then end it: jobs that run may finish')
    .option('--wait', 'until the set has ended')
    .option(
      '-y, --yes',
      'do not ask before more than 10 runners are drained, nor when no worker answers',
    )
    .option('--reason <text>', 'shown with the set and its runners')
    .addHelpText(
      'after',
      '\nRunners that are held are drained, too. Volumes of slots are kept. For a set of no runner that stays: holdfast set scale NAME --replicas 0\n\nExample:\n  $ holdfast set delete linux --wait',
    )
    .action(async (name: string, flags: { wait?: boolean; yes?: boolean; reason?: string }) => {
      const { deleteSet } = await import('./setChange.ts');
      await withSession(command, context, async (session) => {
        context.exit(await deleteSet(session, context.output, name, flags));
      });
    });
}

function addSchema(set: Command, { output }: CommandContext): void {
  set
    .command('schema')
    .description('print the JSON Schema of a file of sets, for editors')
    .addHelpText('after', '\nExample:\n  $ holdfast set schema > sets.schema.json')
    .action(async () =>
      (await import('../installation/jsonSchemas.ts')).printJsonSchema(output, 'Runner sets'),
    );
}

function whole(option: string, text: string, least = 0): number {
  if (!/^\d{1,6}$/.test(text) || Number(text) < least)
    throw new CliError(
      'usage',
      `${option}: "${text}" is not a whole number from ${least} to 999999`,
    );
  return Number(text);
}

const APPLY_HELP = `
A set has a name, a template (what each runner is started with: the fields of "holdfast runner start -f") and a size: replicas, or minIdle
and max. docs/runner-sets.md has every field. Everything is checked before anything is applied; a set that is what the file says already is
left alone. Sets that the file does not name are never touched. "holds" and "paused" stay as they are where the file does not say.

Exit status 1: a set could not be applied; the others were.

Examples:
  $ holdfast set apply -f sets.yaml --dry-run
  $ holdfast set apply -f sets.yaml
  $ echo '{"name": "linux", "minIdle": 1, "max": 20, "template": {"organization": "acme", "labels": ["linux"]}}' | holdfast set apply -f -`;
