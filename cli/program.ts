/**
 * Defines the commands of `holdfast`. Commands import what they need when they run, so `--help`
 * does not load the Temporal SDK.
 */
import { Command, CommanderError, Option } from 'commander';
import { omitUndefined } from '../core/domain/omitUndefined.ts';
import { packageInfo } from '../worker/process/packageInfo.ts';
import { addCompletionCommands } from './completion/completionCommand.ts';
import { outputForm, refuseNames } from './shared/outputOption.ts';
import { CliError, EXIT } from './shared/exit.ts';
import { Output, OUTPUT_FORMS, type Terminal } from './shared/output.ts';
import {
  addInstallationCommands,
  addProcessCommands,
  type Environment,
} from './installation/installationCommands.ts';
import { addVersionCommand } from './installation/versionCommand.ts';
import type { CommandContext } from './shared/commandContext.ts';
import { addHelpCommand } from './shared/helpCommand.ts';
import { addJobCommands } from './job/jobCommands.ts';
import { addMigrateCommands } from './migrate/migrateCommands.ts';
import { addDecommissionCommand } from './decommission/decommissionCommand.ts';
import { addRunnerCommands } from './runner/runnerCommands.ts';
import { addSetCommands } from './set/setCommands.ts';
import { addSweepCommand } from './sweep/sweepCommand.ts';
import { addTopCommand } from './top/topCommand.ts';
import { addWhyCommand } from './why/whyCommand.ts';

const STATUSES = `
Exit status:
  0    success; with "run": the outcome is succeeded
  1    the command failed, or the outcome is not succeeded
  2    invalid usage, input or settings; nothing was done
  3    the runner, set or job does not exist or has already ended
  4    Temporal does not answer
  5    a runner or job with this ID already exists, or another sweep is running
  129, 130, 143   interrupted by SIGHUP, SIGINT, SIGTERM`;

const EXAMPLES = `
Examples:
  $ holdfast doctor                                        check whether runners can work
  $ holdfast worker                                        run the worker
  $ holdfast run --repo acme/app --labels linux,x64        run one runner until its job has ended
  $ holdfast runner start --org acme --static --name big   start a runner that takes many jobs
  $ holdfast top                                           show all sets, runners and jobs
  $ holdfast why linux                                     explain what a set, runner or job waits for
  $ holdfast runner list --phase Busy --watch
  $ holdfast runner drain runner-big --wait
  $ holdfast set apply -f sets.yaml --dry-run              show what a file of sets would change
  $ holdfast set list -o wide
  $ holdfast job run -f job.yaml --attach                  run a job of several steps
  $ holdfast sweep --dry-run                               find orphaned objects and registrations

Settings come from the environment and profile files that the Temporal CLI reads (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
TEMPORAL_PROFILE and others), and from HOLDFAST_TASK_QUEUE and HOLDFAST_TEMPORAL_UI_URL. Options take precedence.`;

/**
 * Parses the arguments and runs the command.
 * @param args - arguments without the program name
 * @returns the exit status
 */
export async function holdfast(args: readonly string[], terminal: Terminal): Promise<number> {
  const output = new Output(terminal, outputForm(args));
  try {
    // All arguments belong to the demo.
    if (args[0] === 'demo')
      return await (await import('./installation/demo.ts')).demo(args.slice(1));
    let status: number = EXIT.ok;
    const program = createProgram(terminal, output, (code) => (status = code));
    await program.parseAsync([...args], { from: 'user' });
    return status;
  } catch (error) {
    if (!(error instanceof CommanderError)) return output.error(error);
    if (error.exitCode === 0) return EXIT.ok;
    // Commander has already printed the help for a missing command.
    if (error.code === 'commander.help') return EXIT.usage;
    return output.error(
      new CliError('usage', `${error.message.replace(/^error: /, '')}; see --help`, {
        cause: error,
      }),
    );
  }
}

function createProgram(
  terminal: Terminal,
  output: Output,
  exit: (status: number) => void,
): Command {
  const program = new Command('holdfast')
    .description('Self-hosted CI runners on Kubernetes as durable Temporal workflows')
    .version(packageInfo().version, '-V, --version', 'Print the version')
    .addOption(
      new Option('--address <host:port>', 'Temporal server (TEMPORAL_ADDRESS)').helpGroup(
        'Connection:',
      ),
    )
    .addOption(
      new Option('--namespace <name>', 'Temporal namespace (TEMPORAL_NAMESPACE)').helpGroup(
        'Connection:',
      ),
    )
    .addOption(
      new Option('--profile <name>', 'Profile of temporal.toml (TEMPORAL_PROFILE)').helpGroup(
        'Connection:',
      ),
    )
    .addOption(
      new Option(
        '--task-queue <name>',
        'Task queue of the runners (HOLDFAST_TASK_QUEUE, default "holdfast")',
      ).helpGroup('Connection:'),
    )
    .addOption(
      new Option(
        '--ui-url <url>',
        'URL of the Temporal UI, for links (HOLDFAST_TEMPORAL_UI_URL)',
      ).helpGroup('Connection:'),
    )
    .addOption(
      new Option(
        '-o, --output <form>',
        'text, wide (more columns), name (IDs only), json or yaml (errors and progress as JSON lines on stderr)',
      ).choices(OUTPUT_FORMS),
    )
    .addOption(new Option('--json', 'Same as --output json').conflicts('output'))
    .hook('preAction', (_program, command) => refuseNames(output, command))
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      // The program prints errors itself, once. Commander writes only the help for a missing
      // command here.
      writeErr: (text) => void (output.json || terminal.stderr.write(text)),
      outputError: () => {},
    })
    .exitOverride()
    .addHelpText('after', EXAMPLES)
    .addHelpText('after', STATUSES);

  const context: CommandContext = { terminal, output, exit };
  const env = (): Environment => environment(program, terminal);
  addProcessCommands(program, context, env);
  addRunnerCommands(program, context);
  addSetCommands(program, context);
  addJobCommands(program, context);
  addMigrateCommands(program, context);
  addDecommissionCommand(program, context);
  addTopCommand(program, context);
  addWhyCommand(program, context);
  addSweepCommand(program, context, env);
  addInstallationCommands(program, context, env);
  addCompletionCommands(program, context);
  addVersionCommand(program, context);
  addHelpCommand(program);
  return program;
}

/**
 * Returns the environment with the connection options added as variables, and without variables
 * that only this command reads.
 */
function environment(program: Command, { env }: Terminal): Environment {
  const flags = program.opts<{
    address?: string;
    namespace?: string;
    profile?: string;
    taskQueue?: string;
  }>();
  const { address, namespace, profile, taskQueue } = flags;
  const { HOLDFAST_TEMPORAL_UI_URL: _ui, ...shared } = env;
  return {
    ...shared,
    ...omitUndefined({
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
      TEMPORAL_PROFILE: profile,
      HOLDFAST_TASK_QUEUE: taskQueue,
    }),
  };
}
