/** `holdfast job …`: its options and help. */
import { Option, type Command } from 'commander';
import type { CancelMode } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseLimit, warn, withSession, type CommandContext } from '../shared/commandContext.ts';
import { CliError } from '../shared/exit.ts';
import { onSigtermOption, type OnSigterm } from '../shared/interrupts.ts';
import { addWatchOptions, printOrWatch, type WatchFlags } from '../shared/watch.ts';
import type { JobSelection } from './listJobs.ts';
import type { RevisionFlags } from './runRevision.ts';

/** Adds the commands. Each opens a session of its own and closes it. */
export function addJobCommands(program: Command, context: CommandContext): void {
  const job = program
    .command('job')
    .description('run, list, look at and cancel jobs of several steps (pre, test, post)');
  addRun(job, context);
  addList(job, context);
  addGet(job, context);
  addCancel(job, context);
  addLogs(job, context);
  job
    .command('schema')
    .description('print the JSON Schema of a job, for editors')
    .addHelpText('after', '\nExample:\n  $ holdfast job schema > job.schema.json')
    .action(async () =>
      (await import('../installation/jsonSchemas.ts')).printJsonSchema(
        context.output,
        'A job of several steps',
      ),
    );
}

interface RunFlags extends Partial<RevisionFlags> {
  readonly file: string;
  readonly id?: string;
  readonly attach?: boolean;
  readonly onSigterm?: OnSigterm;
}

function addRun(job: Command, context: CommandContext): void {
  const command = job
    .command('run')
    .description('start a job from a file, and return')
    .requiredOption('-f, --file <path>', 'YAML or JSON; - for standard input')
    .option('--id <id>', 'id of its workflow (default: job-, its name and a generated one)')
    .option('--attach', 'stay until it ends, and show its log')
    .addOption(onSigtermOption())
    .addOption(
      new Option(
        '--commit <id>',
        "run it for this version of a change set; an older version's run is ended first",
      ).conflicts(['id', 'attach']),
    )
    .option('--base <branch>', 'with --commit: the branch that it is, or will be, part of')
    .option(
      '--pull-request <n>',
      "with --commit: the change set is this pull request; else it is the base's pushes",
    )
    .option('--rerun', 'with --commit: also if that commit was run already')
    .addHelpText('after', RUN_HELP)
    .action(async ({ commit, base, pullRequest, rerun, ...flags }: RunFlags) => {
      if (flags.onSigterm !== undefined && flags.attach !== true)
        throw new CliError('usage', '--on-sigterm: is for an attached run; add --attach');
      for (const [name, value] of Object.entries({ base, 'pull-request': pullRequest, rerun })) {
        if (value !== undefined && commit === undefined)
          throw new CliError(
            'usage',
            `--${name}: is for a version of a change set; add --commit, or leave it out`,
          );
      }
      const [{ planJob, startJob }, { planRevision, runRevision }] = await Promise.all([
        import('./startJob.ts'),
        import('./runRevision.ts'),
      ]);
      const plan = await planJob(flags.file, flags.id);
      const version =
        commit === undefined
          ? undefined
          : planRevision(
              plan,
              { commit, ...omitUndefined({ base, pullRequest, rerun }) },
              new Date().toISOString(),
            );
      for (const each of [
        ...(plan.input.pre ?? []),
        ...plan.input.test,
        ...(plan.input.post ?? []),
      ])
        warn(context, [], { env: each.env ?? {} }, each.name);
      warn(context, plan.spec.warnings, {});
      await withSession(command, context, async (session) => {
        if (version !== undefined) return await runRevision(session, context.output, version);
        if (flags.attach !== true) {
          const started = await startJob(session, plan);
          const ui = session.link(started.workflowId, started.runId);
          return context.output.result(
            { id: started.workflowId, runId: started.runId, ...omitUndefined({ ui }) },
            [started.workflowId, ...(ui === undefined ? [] : [ui])],
          );
        }
        const [{ attach }, { JOB }] = await Promise.all([
          import('../shared/attach.ts'),
          import('./followJob.ts'),
        ]);
        context.exit(
          await attach(
            session,
            context.output,
            plan.workflowId,
            async () => await startJob(session, plan),
            { target: JOB, ...omitUndefined({ onSigterm: flags.onSigterm }) },
          ),
        );
      });
    });
}

function addList(job: Command, context: CommandContext): void {
  const command = addWatchOptions(job.command('list'))
    .description('list jobs, newest first')
    .option('--name <name>', 'jobs of this name')
    .option('--scope <owner/repo>', 'jobs of this repository')
    .option('--all', 'ended jobs too')
    .option('--limit <n>', 'at most this many', '100')
    .addHelpText(
      'after',
      '\nExample:\n  $ holdfast job list --name web --all\n\nWhat it shows may be a second old.',
    )
    .action(async (flags: JobSelection & WatchFlags & { limit: string }) => {
      const limit = parseLimit(flags.limit);
      const { listJobs } = await import('./listJobs.ts');
      await withSession(command, context, (session) =>
        printOrWatch(context.output, flags, (output) => listJobs(session, output, flags, limit)),
      );
    });
}

function addGet(job: Command, context: CommandContext): void {
  const command = addWatchOptions(job.command('get <id>'))
    .description(
      'show one job: its stages and steps with times, states and pods, and what it waits for',
    )
    .addHelpText(
      'after',
      '\nThe id is the workflow\'s; its "job-" may be left out. Each step is a runner: see "holdfast runner get ID-test-1".\n\nExample:\n  $ holdfast job get web-brisk-otter-7f3a',
    )
    .action(async (id: string, flags: WatchFlags) => {
      const { getJob } = await import('./getJob.ts');
      await withSession(command, context, (session) =>
        printOrWatch(context.output, flags, (output) => getJob(session, output, id)),
      );
    });
}

interface CancelFlags {
  readonly mode: CancelMode;
  readonly reason?: string;
  readonly wait?: boolean;
  readonly changeSet?: string;
}

function addCancel(job: Command, context: CommandContext): void {
  const command = job
    .command('cancel [id]')
    .description('interrupt a job: the running step is stopped within its grace, then post runs')
    .option(
      '--change-set <change>',
      'instead of an id: all jobs for a pull request (owner/repo#7) or for the pushes to a branch (owner/repo@main)',
    )
    .addOption(
      new Option(
        '--mode <mode>',
        'drain: let the running stage finish, then post; stop: as above; force: end everything now, post too',
      )
        .choices(['drain', 'stop', 'force'])
        .default('stop'),
    )
    .option('--reason <text>', 'shown with the job')
    .option('--wait', 'until it has ended; exit status 1 if it ends failed or errored')
    .addHelpText('after', CANCEL_HELP)
    .action(async (id: string | undefined, { changeSet, ...flags }: CancelFlags) => {
      const [{ cancelJob }, { cancelChangeSet, parseSelector }] = await Promise.all([
        import('./cancelJob.ts'),
        import('./cancelChangeSet.ts'),
      ]);
      const selector = changeSet === undefined ? undefined : parseSelector(changeSet);
      if ((id === undefined) === (selector === undefined))
        throw new CliError('usage', 'name one job, or select those of a change set: --change-set');
      await withSession(command, context, async (session) =>
        context.exit(
          selector === undefined
            ? await cancelJob(session, context.output, id ?? '', flags)
            : await cancelChangeSet(session, context.output, selector, flags),
        ),
      );
    });
}

function addLogs(job: Command, context: CommandContext): void {
  const command = job
    .command('logs <id>')
    .description(
      "print a job's own log: steps, interruptions, clean-up; also when everything of it is gone",
    )
    .option('--follow', 'until the job has ended')
    .option('--timestamps', 'the time before each line')
    .addOption(
      new Option('--step <name>', 'instead: what this step has printed, from the store').conflicts([
        'follow',
        'timestamps',
      ]),
    )
    .option(
      '--store <folder>',
      'with --step: where the claim of HOLDFAST_STORE_VOLUME_CLAIM is mounted here; a bucket is s3://bucket/folder, and the usual AWS_… variables lead to it',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ holdfast job logs web-brisk-otter-7f3a --follow\n  $ holdfast job logs web-brisk-otter-7f3a --step unit --store /mnt/artifacts\n  $ AWS_PROFILE=ci holdfast job logs web-brisk-otter-7f3a --step unit --store s3://artifacts/ci',
    )
    .action(
      async (
        id: string,
        {
          step,
          store,
          ...flags
        }: { step?: string; store?: string; follow?: boolean; timestamps?: boolean },
      ) => {
        if ((step === undefined) !== (store === undefined))
          throw new CliError(
            'usage',
            step === undefined
              ? '--store: add --step, whose log it is'
              : '--step: add --store, the folder in which the store is mounted here, or s3://bucket/folder',
          );
        if (step !== undefined && store !== undefined) {
          const { stepLog } = await import('./stepLog.ts');
          return await withSession(command, context, (session) =>
            stepLog(session, context.output, id, step, store),
          );
        }
        const { jobLogs } = await import('./followJob.ts');
        await withSession(command, context, (session) =>
          jobLogs(session, context.output, id, flags),
        );
      },
    );
}

const CANCEL_HELP = `
A stronger request upgrades a weaker one; a weaker or a second one changes nothing.

--change-set finds the groups of runs that "job run --commit" made, and running jobs whose repository and source say the same. A version that
waits in a group is dropped. No job at all is success, too: a pull request may be closed when nothing runs. Lists may be a second old.

Examples:
  $ holdfast job cancel web-brisk-otter-7f3a --reason "wrong branch" --wait
  $ holdfast job cancel --change-set acme/web#7 --reason closed`;

const RUN_HELP = `
The file holds one job: a name, the steps of pre, test and post, and deadlines. docs/jobs.md has every field. Everything is checked before
anything is started.

With --attach, Ctrl-C once drains: the stage that runs may finish, and post runs. Twice stops the running step within its grace; post runs. Three
times leaves at once, with status 1. Without a terminal, as in a CI step, the first SIGINT stops it, and the second leaves. SIGTERM detaches, with
status 143, and does nothing to the job. With --on-sigterm stop it stops the job, and a second SIGTERM detaches.

With --commit, --base and --pull-request it is a version of that pull request; without the number, of the pushes to that branch. One version runs
at a time: a newer one has the older run interrupted, and begins when that and its pods are gone. The same commit is not run twice.

Examples:
  $ holdfast job run -f job.yaml
  $ holdfast job run -f job.yaml --attach
  $ holdfast job run -f job.yaml --commit 4f2a9c1 --base main --pull-request 7
  $ echo '{"name": "web", "test": [{"name": "unit", "image": "example.com/web:1", "commands": "make test"}]}' | holdfast job run -f -`;
