/** Options and help of `holdfast runner …` and `holdfast run`. */
import { Option, type Command } from 'commander';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  parseCount,
  parseLimit,
  warn,
  withSession,
  type CommandContext,
} from '../shared/commandContext.ts';
import { addGetCommand } from '../shared/getCommand.ts';
import { CliError, EXIT } from '../shared/exit.ts';
import { onSigtermOption, type OnSigterm } from '../shared/interrupts.ts';
import { addWatchOptions, printOrWatch, type WatchFlags } from '../shared/watch.ts';
import { addWebOption, openList, type WebFlag } from '../shared/web.ts';
import { RUNNER_FLAGS, type RunnerFlags } from './runnerFlags.ts';
import type { StartedRunner } from './startRunner.ts';
import type { Selection } from '../shared/selection.ts';

/** Adds the commands. Each opens a session and closes it. */
export function addRunnerCommands(program: Command, context: CommandContext): void {
  const runner = program.command('runner').description('Start, list, drain and cancel runners');
  addStart(runner, context);
  addList(runner, context);
  addGet(runner, context);
  addLogs(runner, context);
  addStop(runner, context, 'drain');
  addStop(runner, context, 'cancel');
  addSchema(runner, context);
  addRun(program, context);
}

function addStart(runner: Command, context: CommandContext): void {
  const command = runner
    .command('start [command...]')
    .description('Start a runner or a plain command');
  addSpecOptions(command);
  command
    .addHelpText('after', SPEC_HELP)
    .addHelpText(
      'after',
      '\nExamples:\n  $ holdfast runner start --repo acme/app --labels linux,x64\n  $ holdfast runner start -f runner.yaml --name nightly --job-timeout 2h',
    )
    .action(async (words: string[], flags: RunnerFlags) => {
      const { planStart, startRunner } = await import('./startRunner.ts');
      const plan = await planStart(flags, words);
      warn(context, plan.warnings, plan.input);
      await withSession(command, context, async (session) => {
        const started = await startRunner(session, plan);
        const ui = session.link(started.workflowId, started.runId);
        context.output.result(
          { id: started.workflowId, runId: started.runId, ...omitUndefined({ ui }) },
          [started.workflowId, ...(ui === undefined ? [] : [ui])],
        );
      });
    });
}

function addSchema(runner: Command, { output }: CommandContext): void {
  runner
    .command('schema')
    .description('Print the JSON Schema of a runner file, for editors')
    .addHelpText('after', '\nExample:\n  $ holdfast runner schema > runner.schema.json')
    .action(async () =>
      (await import('../installation/jsonSchemas.ts')).printJsonSchema(output, 'A runner'),
    );
}

function addList(runner: Command, context: CommandContext): void {
  const command = addWebOption(
    addWatchOptions(
      addSelectionOptions(runner.command('list').description('List runners, newest first')),
    ),
  )
    .option(
      '--scope <name>',
      'List only runners of this organization, repository (owner/repo) or enterprise',
    )
    .option(
      '--phase <phase>',
      'List only runners in this phase: Requested, Provisioning, Registering, Idle, Busy, Draining, Unregistering, TearingDown or Gone',
    )
    .option(
      '--outcome <outcome>',
      'List only ended runners with this outcome: succeeded, failed, errored or aborted',
    )
    .option('--all', 'Include ended runners')
    .option('--limit <n>', 'Maximum number to list', '100')
    .addHelpText(
      'after',
      '\nExamples:\n  $ holdfast runner list --set linux --phase Busy\n  $ holdfast runner list --all -q \'RunnerCause = "evicted" AND StartTime > "2026-01-01T00:00:00Z"\'\n\nLists may be a second old.',
    )
    .action(async (flags: Selection & WatchFlags & WebFlag & { limit: string }) => {
      const limit = parseLimit(flags.limit);
      const { selectionQuery } = await import('../shared/selection.ts');
      const query = selectionQuery(flags); // rejects invalid usage before connecting to Temporal
      const { listRunners } = await import('./listRunners.ts');
      await withSession(command, context, async (session) => {
        if (flags.web === true) return await openList(session, context.output, query);
        await printOrWatch(context.output, flags, (output) =>
          listRunners(session, output, flags, limit),
        );
      });
    });
}

function addGet(runner: Command, context: CommandContext): void {
  addGetCommand(runner, context, {
    argument: '<id...>',
    description: 'Show the phase, pod and job of runners',
    help: '\nThe ID is that of the workflow; you can omit its prefix "runner-".\n\nExample:\n  $ holdfast runner get runner-big',
    load: async () => ({
      kind: (await import('../shared/resourceKind.ts')).RUNNER,
      read: (await import('./getRunner.ts')).getRunner,
    }),
  });
}

function addLogs(runner: Command, context: CommandContext): void {
  const command = runner
    .command('logs <id>')
    .description('Print the log of a runner')
    .option('-f, --follow', 'Print until the runner has ended')
    .option('--tail <n>', 'Number of lines from the end (default: all)')
    .addHelpText('after', LOGS_HELP)
    .action(async (id: string, { follow, tail }: { follow?: boolean; tail?: string }) => {
      const lines = tail === undefined ? undefined : parseCount('--tail', tail);
      const { runnerLogs } = await import('./runnerLogs.ts');
      await withSession(command, context, (session) =>
        runnerLogs(
          session,
          context.output,
          context.terminal.env,
          id,
          omitUndefined({ follow, tail: lines }),
        ),
      );
    });
}

const LOGS_HELP = `
The log is read from the cluster (HOLDFAST_KUBECONFIG, HOLDFAST_KUBE_CONTEXT, else as kubectl does; needs "get" for pods and pods/log), or, for a
local process, from HOLDFAST_STATE_DIR. After the pod is deleted, only the last lines of a runner that did not succeed are available, from the
directory of the worker's HOLDFAST_POD_LOGS.

Examples:
  $ holdfast runner logs runner-big --tail 50
  $ holdfast runner logs runner-big --follow`;

function addStop(runner: Command, context: CommandContext, action: 'drain' | 'cancel'): void {
  const command = addSelectionOptions(
    runner
      .command(`${action} [id...]`)
      .description(
        action === 'drain'
          ? 'Drain runners: a running job may finish'
          : 'Cancel runners: stop the job within its grace period',
      ),
  );
  if (action === 'cancel')
    command.addOption(
      new Option(
        '--mode <mode>',
        'drain: let the job finish; stop: stop the job within its grace period; force: end it now (default: stop)',
      )
        .choices(['drain', 'stop', 'force'])
        .default('stop'),
    );
  command
    .option('--reason <text>', 'Reason shown with the runner')
    .option('--wait', 'Wait until they have ended; exit status 1 if one failed or errored')
    .option('-y, --yes', 'Skip the confirmation')
    .addHelpText(
      'after',
      `\nA stronger mode replaces a weaker one; a weaker one changes nothing.\n\nExamples:\n  $ holdfast runner ${action} runner-big --reason "new image" --wait\n  $ holdfast runner ${action} --set linux --yes`,
    )
    .action(
      async (
        ids: string[],
        flags: Selection & {
          mode?: 'drain' | 'stop' | 'force';
          reason?: string;
          wait?: boolean;
          yes?: boolean;
        },
      ) => {
        if ((ids.length === 0) === (flags.set === undefined && flags.query === undefined)) {
          throw new CliError(
            'usage',
            `give the IDs of runners, or select them with --set or --query; see "holdfast runner ${action} --help"`,
          );
        }
        const { stopRunners } = await import('./stopRunners.ts');
        await withSession(command, context, async (session) => {
          context.exit(
            await stopRunners(
              session,
              context.output,
              { ids, selection: flags },
              { ...flags, action, mode: action === 'drain' ? 'drain' : (flags.mode ?? 'stop') },
            ),
          );
        });
      },
    );
}

function addRun(program: Command, context: CommandContext): void {
  const command = program
    .command('run [command...]')
    .description('Start or attach to a runner or plain command; wait until it ends');
  addSpecOptions(command);
  command
    .option('--attach <id>', 'Attach to this runner instead of starting one')
    .option(
      '--no-restart',
      'If the runner with this ID has ended, report its outcome instead of starting another',
    )
    .addOption(onSigtermOption())
    .addHelpText('after', SPEC_HELP)
    .addHelpText('after', RUN_HELP)
    .action(async (words: string[], { onSigterm, ...flags }: RunFlags) => {
      const signals = omitUndefined({ onSigterm });
      const { planStart, startRunner, findRunner } = await import('./startRunner.ts');
      const plan = flags.attach === undefined ? await planStart(flags, words) : undefined;
      if (plan === undefined) rejectOtherOptions(words, flags);
      else warn(context, plan.warnings, plan.input);
      const whenEnded = flags.restart ? 'attach' : 'attachEnded';
      await withSession(command, context, async (session) => {
        const { attach } = await import('../shared/attach.ts');
        if (plan === undefined) {
          const found = await findRunner(session, flags.attach ?? '');
          return context.exit(
            await attach(session, context.output, found.workflowId, async () => found, signals),
          );
        }
        const start = async (): Promise<StartedRunner> =>
          await startRunner(session, plan, whenEnded);
        context.exit(await attach(session, context.output, plan.workflowId, start, signals));
      });
    });
}

interface RunFlags extends RunnerFlags {
  readonly attach?: string;
  /** Whether a lost runner is replaced. `false` for `--no-restart`. */
  readonly restart: boolean;
  readonly onSigterm?: OnSigterm;
}

/**
 * Rejects options of a new runner together with `--attach`.
 * @throws CliError `usage`
 */
function rejectOtherOptions(
  words: readonly string[],
  { restart, ...flags }: Omit<RunFlags, 'onSigterm'>,
): void {
  if (words.length > 0 || !restart || Object.keys(flags).length > 1)
    throw new CliError(
      'usage',
      '--attach: must be used without options of a new runner; remove them',
    );
}

function addSelectionOptions(command: Command): Command {
  return command
    .option('--set <name>', 'Select the runners of this set')
    .option('-q, --query <filter>', 'Temporal list filter, for example \'RunnerScope = "acme"\'');
}

function addSpecOptions(command: Command): void {
  command.option(
    '-f, --file <path>',
    'YAML or JSON file with the whole input; - for standard input; options take precedence',
  );
  for (const { option, help } of RUNNER_FLAGS) {
    const flag = new Option(option, help);
    if (option === '--static') flag.conflicts('ephemeral');
    if (option.startsWith('--env'))
      flag.argParser((pair: string, before: string[] | undefined) => [...(before ?? []), pair]);
    command.addOption(flag);
  }
}

const SPEC_HELP =
  '\nGive exactly one of --org, --repo and --enterprise, here or in the file; for a plain command give none of them, and -- COMMAND [ARGUMENTS].\nDurations: 30s, 10m, 1h30m.';

const RUN_HELP = `
The first Ctrl-C drains: the job may finish. The second stops the job within its grace period. The third exits at once with status ${EXIT.failed};
the runner keeps its cancel request. Without a terminal, the first SIGINT stops the job and the second exits. SIGTERM detaches with status
${EXIT.sigterm} and leaves the runner running: the same command with the same --name attaches to it again. With --on-sigterm stop, SIGTERM stops
the job and a second SIGTERM detaches.

Examples:
  $ holdfast run --repo acme/app --labels linux,x64
  $ holdfast run --org acme --static --name big
  $ holdfast run --image alpine:3 --name migrate -- ./migrate.sh --all
  $ holdfast run --attach runner-big`;
