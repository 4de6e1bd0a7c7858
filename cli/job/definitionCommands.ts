/** `holdfast job apply|definitions|definition|pause|resume|delete`: their options and help. */
import type { Command } from 'commander';
import { defined } from '../../core/domain/omitUndefined.ts';
import { readLimit, warn, withSession, type CommandContext } from '../shared/commandContext.ts';
import { addWatchOptions, showWatched, type WatchFlags } from '../shared/watch.ts';

/** Adds the commands of declared jobs. Each opens a session of its own and closes it. */
export function addDefinitionCommands(job: Command, context: CommandContext): void {
  const apply = job
    .command('apply')
    .description(
      'bring declared jobs to what a file says: those that pushes, pull requests and schedules start',
    )
    .requiredOption(
      '-f, --file <path>',
      'YAML of one or more documents or with lists of jobs, or JSON; - for standard input',
    )
    .option('--dry-run', 'show what would change; change nothing')
    .addHelpText('after', APPLY_HELP)
    .action(async (flags: { file: string; dryRun?: boolean }) => {
      const [
        { readFileText, shownPath },
        { readSetDocuments },
        { admitDefinitions, NO_JOB },
        { applyDefinitions },
      ] = await Promise.all([
        import('../runner/runnerFlags.ts'),
        import('../set/setDocuments.ts'),
        import('./definitionAdmission.ts'),
        import('./definitionApply.ts'),
      ]);
      const shown = shownPath(flags.file);
      const documents = admitDefinitions(
        readSetDocuments(readFileText(flags.file), shown, NO_JOB),
        shown,
      );
      for (const { input, warnings } of documents) {
        warn(context, warnings, {}, input.name);
        for (const { name, env = {} } of [
          ...(input.pre ?? []),
          ...input.test,
          ...(input.post ?? []),
        ])
          warn(context, [], { env }, `${input.name} ${name}`);
      }
      await withSession(apply, context, async (session) =>
        context.exit(
          await applyDefinitions(session, context.output, documents, {
            dryRun: flags.dryRun === true,
          }),
        ),
      );
    });
  const list = addWatchOptions(job.command('definitions'))
    .description(
      'list declared jobs: how many of their runs are under way, how many wait, and when their schedule is due',
    )
    .option('--limit <n>', 'at most this many', '200')
    .addHelpText('after', '\nExample:\n  $ holdfast job definitions --json')
    .action(async (flags: WatchFlags & { limit: string }) => {
      const limit = readLimit(flags.limit);
      const { listDefinitions } = await import('./definitionShow.ts');
      await withSession(list, context, (session) =>
        showWatched(context.output, flags, (output) => listDefinitions(session, output, limit)),
      );
    });
  const get = addWatchOptions(job.command('definition <name>'))
    .description(
      'show one declared job: what runs, what waits for its turn, what was left out and why',
    )
    .addHelpText('after', `${NAMES}\n\nExample:\n  $ holdfast job definition acme/web:unit`)
    .action(async (name: string, flags: WatchFlags) => {
      const { getDefinition } = await import('./definitionShow.ts');
      await withSession(get, context, (session) =>
        showWatched(context.output, flags, (output) => getDefinition(session, output, name)),
      );
    });
  const pause = job
    .command('pause <name>')
    .description('begin no run of a declared job; those under way go on, and what comes waits')
    .option('--reason <text>', 'shown with the job')
    .addHelpText(
      'after',
      `${NAMES}\n\nExample:\n  $ holdfast job pause unit --reason "the cloud is down"`,
    )
    .action(async (name: string, { reason }: { reason?: string }) => {
      const { pauseDefinition } = await import('./definitionChange.ts');
      await withSession(pause, context, (session) =>
        pauseDefinition(session, context.output, name, reason),
      );
    });
  const resume = job
    .command('resume <name>')
    .description('begin runs of a declared job again, and what has waited')
    .addHelpText('after', `${NAMES}\n\nExample:\n  $ holdfast job resume unit`)
    .action(async (name: string) => {
      const { resumeDefinition } = await import('./definitionChange.ts');
      await withSession(resume, context, (session) =>
        resumeDefinition(session, context.output, name),
      );
    });
  const remove = job
    .command('delete <name>')
    .description('end a declared job: what waits is not begun, and it ends when its runs have')
    .option('--wait', 'until it has ended')
    .option('--reason <text>', 'shown with the job')
    .addHelpText(
      'after',
      `${NAMES} "holdfast job cancel" ends a run; an apply that comes before the end revokes it.\n\nExample:\n  $ holdfast job delete unit --wait`,
    )
    .action(async (name: string, { wait, reason }: { wait?: boolean; reason?: string }) => {
      const { deleteDefinition } = await import('./definitionChange.ts');
      await withSession(remove, context, async (session) =>
        context.exit(
          await deleteDefinition(session, context.output, name, defined({ wait, reason })),
        ),
      );
    });
}

const NAMES =
  '\nA declared job is named by its name, where one repository alone has it; else as owner/repo:name.';

const APPLY_HELP = `
A declared job is a job (the fields of "holdfast job run -f") with repository, on (push, pull_request, schedule), untrusted and maxConcurrency.
docs/jobs.md has every field. Everything is checked before anything is applied; a job that is what the file says already is left alone. Those
that the file does not name are never touched. What is applied holds from the next run on.

Exit status 1: a job could not be applied; the others were.

Examples:
  $ holdfast job apply -f jobs.yaml --dry-run
  $ holdfast job apply -f jobs.yaml
  $ holdfast job schema --declared > jobs.schema.json`;
