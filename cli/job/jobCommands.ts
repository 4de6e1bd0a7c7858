/** Options and help of `holdfast job …`. */
import { Option, type Command } from 'commander';
import type { CancelMode } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseLimit, warn, withSession, type CommandContext } from '../shared/commandContext.ts';
import { forEachId } from '../shared/forEachId.ts';
import { addGetCommand } from '../shared/getCommand.ts';
import { CliError } from '../shared/exit.ts';
import { onSigtermOption, type OnSigterm } from '../shared/interrupts.ts';
import { addWatchOptions, printOrWatch, type WatchFlags } from '../shared/watch.ts';
import { addWebOption, openList, type WebFlag } from '../shared/web.ts';
import type { JobSelection } from './listJobs.ts';
import type { RevisionFlags } from './runRevision.ts';

/** Adds the commands. Each opens a session and closes it. */
export function addJobCommands(program: Command, context: CommandContext): void {
  const job = program
    .command('job')
    .description('Run, list and cancel jobs of several steps (pre, test, post)');
  addRun(job, context);
  addList(job, context);
  addGet(job, context);
  addCancel(job, context);
  addLogs(job, context);
  job
    .command('schema')
    .description('Print the JSON Schema of a job file, for editors')
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
    .description('Start a job from a file')
    .requiredOption('-f, --file <path>', 'YAML or JSON file; - for standard input')
    .option('--id <id>', 'Workflow ID (default: "job-<name>-" and a generated suffix)')
    .option('--attach', 'Wait until the job ends, and print its log')
    .addOption(onSigtermOption())
    .addOption(
      new Option(
        '--commit <id>',
        'Commit of a change set; an older run of the change set is interrupted first',
      ).conflicts(['id', 'attach']),
    )
    .option('--base <branch>', 'With --commit: branch that the commit is, or will be, part of')
    .option('--pull-request <n>', 'With --commit: pull request (default: the pushes to --base)')
    .option('--rerun', 'With --commit: run it even if this commit has already run')
    .addHelpText('after', RUN_HELP)
    .action(async ({ commit, base, pullRequest, rerun, ...flags }: RunFlags) => {
      if (flags.onSigterm !== undefined && flags.attach !== true)
        throw new CliError('usage', '--on-sigterm: must be used with --attach; add it');
      for (const [name, value] of Object.entries({ base, 'pull-request': pullRequest, rerun })) {
        if (value !== undefined && commit === undefined)
          throw new CliError(
            'usage',
            `--${name}: must be used with --commit; add it, or remove this option`,
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
        const [{ attach }, { ATTACHED_JOB }] = await Promise.all([
          import('../shared/attach.ts'),
          import('./followJob.ts'),
        ]);
        context.exit(
          await attach(
            session,
            context.output,
            plan.workflowId,
            async () => await startJob(session, plan),
            { target: ATTACHED_JOB, ...omitUndefined({ onSigterm: flags.onSigterm }) },
          ),
        );
      });
    });
}

function addList(job: Command, context: CommandContext): void {
  const command = addWebOption(addWatchOptions(job.command('list')))
    .description('List jobs, newest first')
    .option('--name <name>', 'List only jobs with this name')
    .option('--scope <owner/repo>', 'List only jobs of this repository')
    .option('--all', 'Include ended jobs')
    .option('--limit <n>', 'Maximum number to list', '100')
    .addHelpText(
      'after',
      '\nExample:\n  $ holdfast job list --name web --all\n\nLists may be a second old.',
    )
    .action(async (flags: JobSelection & WatchFlags & WebFlag & { limit: string }) => {
      const limit = parseLimit(flags.limit);
      const { jobsQuery, listJobs } = await import('./listJobs.ts');
      await withSession(command, context, async (session) => {
        if (flags.web === true) return await openList(session, context.output, jobsQuery(flags));
        await printOrWatch(context.output, flags, (output) =>
          listJobs(session, output, flags, limit),
        );
      });
    });
}

function addGet(job: Command, context: CommandContext): void {
  addGetCommand(job, context, {
    argument: '<id...>',
    description: 'Show the stages, steps and pods of jobs',
    help: '\nThe ID is that of the workflow; you can omit its prefix "job-".\n\nExample:\n  $ holdfast job get web-brisk-otter-7f3a --watch',
    load: async () => ({
      kind: (await import('../shared/resourceKind.ts')).JOB,
      read: (await import('./getJob.ts')).getJob,
    }),
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
    .command('cancel [id...]')
    .description('Interrupt a job: stop the running step, then run post')
    .option(
      '--change-set <change>',
      'Instead of an ID: all jobs of a pull request (owner/repo#7) or of the pushes to a branch (owner/repo@main)',
    )
    .addOption(
      new Option(
        '--mode <mode>',
        'drain: let the running stage finish, then run post; stop: stop the running step within its grace period, then run post; force: end everything now (default: stop)',
      )
        .choices(['drain', 'stop', 'force'])
        .default('stop'),
    )
    .option('--reason <text>', 'Reason shown with the job')
    .option('--wait', 'Wait until the job has ended; exit status 1 if it failed or errored')
    .addHelpText('after', CANCEL_HELP)
    .action(async (ids: string[], { changeSet, ...flags }: CancelFlags) => {
      const [{ cancelJob }, { cancelChangeSet, parseSelector }] = await Promise.all([
        import('./cancelJob.ts'),
        import('./cancelChangeSet.ts'),
      ]);
      const selector = changeSet === undefined ? undefined : parseSelector(changeSet);
      if ((ids.length === 0) === (selector === undefined))
        throw new CliError('usage', 'give the IDs of jobs, or --change-set');
      await withSession(command, context, async (session) =>
        context.exit(
          selector === undefined
            ? await forEachId(context.output, 'jobs', ids, (id) => cancelJob(session, id, flags))
            : await cancelChangeSet(session, context.output, selector, flags),
        ),
      );
    });
}

function addLogs(job: Command, context: CommandContext): void {
  const command = job
    .command('logs <id>')
    .description('Print the log of a job, or of one of its steps')
    .option('--follow', 'Print until the job has ended')
    .option('--timestamps', 'Print the time before each line')
    .addOption(
      new Option(
        '--step <name>',
        'Print the output of this step, from the artifact store',
      ).conflicts(['follow', 'timestamps']),
    )
    .option(
      '--store <folder>',
      'With --step: directory where the claim of HOLDFAST_STORE_VOLUME_CLAIM is mounted here, or s3://bucket/folder with the usual AWS_* variables',
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
              ? '--store: must be used with --step; add it'
              : '--step: must be used with --store; add the directory where the store is mounted here, or s3://bucket/folder',
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
A stronger mode replaces a weaker one. A weaker mode, or the same one again, changes nothing.

--change-set finds the runs that "job run --commit" started, and running jobs with the same repository and source. A commit that waits for its run
is dropped. If no job runs, the command succeeds: a pull request may be closed at any time. Lists may be a second old.

Examples:
  $ holdfast job cancel web-brisk-otter-7f3a --reason "wrong branch" --wait
  $ holdfast job cancel --change-set acme/web#7 --reason closed`;

const RUN_HELP = `
The file contains one job: a name, the steps of pre, test and post, and timeouts. See docs/jobs.md for all fields. The job is validated before
anything is started.

With --attach, the first Ctrl-C drains: the running stage finishes, then post runs. The second stops the running step within its grace period, then
post runs. The third exits at once with status 1. Without a terminal, as in a CI step, the first SIGINT stops the job and the second exits. SIGTERM
detaches with status 143 and leaves the job running. With --on-sigterm stop, SIGTERM stops the job and a second SIGTERM detaches.

With --commit, --base and --pull-request the job runs for a commit of that pull request; without --pull-request, for a push to that branch. One
commit runs at a time: a newer one interrupts the older run, and starts when that run and its pods are gone. The same commit is not run twice.

Examples:
  $ holdfast job run -f job.yaml
  $ holdfast job run -f job.yaml --attach
  $ holdfast job run -f job.yaml --commit 4f2a9c1 --base main --pull-request 7
  $ echo '{"name": "web", "test": [{"name": "unit", "image": "example.com/web:1", "commands": "make test"}]}' | holdfast job run -f -`;
