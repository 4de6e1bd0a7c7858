/** The commands of `holdfast`. Whatever a command needs is imported when it runs: `--help` loads no Temporal SDK. */
import { Command, CommanderError, Option } from 'commander';
import { demoProgram } from './installation/demoProgram.ts';
import { omitUndefined } from '../core/domain/omitUndefined.ts';
import { packageVersion } from '../worker/process/packageVersion.ts';
import { addCompletionCommands } from './completion/completionCommand.ts';
import { outputForm, refuseNames } from './shared/outputOption.ts';
import { CliError, EXIT } from './shared/exit.ts';
import { Output, OUTPUT_FORMS, type Terminal } from './shared/output.ts';
import type { CodecServerFlags } from './installation/codecServer.ts';
import type { PodPolicyOptions } from './installation/podPolicy.ts';
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

/** Parses the arguments and runs the command. @param args - without the program's name @returns the status to exit with */
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
    // Help that was shown for want of a command has said everything already.
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
    .version(packageVersion(), '-V, --version', 'Print the version')
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
      // This program prints errors itself, once. What commander writes here is the help for a
      // missing command.
      writeErr: (text) => void (output.json || terminal.stderr.write(text)),
      outputError: () => {},
    })
    .exitOverride()
    .addHelpText('after', EXAMPLES)
    .addHelpText('after', STATUSES);

  program
    .command('worker')
    .description('Run the worker until SIGTERM or SIGINT')
    .addHelpText(
      'after',
      '\nIts settings are environment variables: see docs/configuration.md; "holdfast doctor" checks them. A worker that stops cancels no runner.',
    )
    .action(async () =>
      exit(
        await (
          await import('../worker/process/run.ts')
        ).runWorkerProcess({ env: environment(program, terminal) }),
      ),
    );

  program
    .command('webhook')
    .description('Run the webhook receiver without a worker, until SIGTERM or SIGINT')
    .addHelpText(
      'after',
      '\nA worker with the webhook secret also receives webhooks. This command is for a process that the Internet can reach: it needs the secret and\nTemporal, but no credential and no cluster. See docs/configuration.md for its settings.',
    )
    .action(async () =>
      exit(
        await (
          await import('../worker/webhook/webhookProcess.ts')
        ).runWebhookProcess({ env: environment(program, terminal) }),
      ),
    );

  addRunnerCommands(program, { terminal, output, exit });
  addSetCommands(program, { terminal, output, exit });
  addJobCommands(program, { terminal, output, exit });
  addMigrateCommands(program, { terminal, output, exit });
  addDecommissionCommand(program, { terminal, output, exit });
  addTopCommand(program, { terminal, output, exit });
  addWhyCommand(program, { terminal, output, exit });
  addSweepCommand(program, { terminal, output, exit }, () => environment(program, terminal));

  program
    .command('doctor')
    .description('Check the settings, Temporal, the compute and its permissions')
    .addHelpText(
      'after',
      '\nRun it where the worker runs, with the same environment. It prints how to fix each problem. Exit status 0: runners can work; 1: they cannot;\n2: the settings are invalid.',
    )
    .action(async () =>
      exit(
        await (
          await import('./installation/doctor.ts')
        ).doctor(output, environment(program, terminal)),
      ),
    );

  const podPolicy = program
    .command('pod-policy')
    .description('Print the pod policy as a ValidatingAdmissionPolicy')
    .option('--service-account <namespace/name>', 'Service account of the worker (required)')
    .option('--job-pods', "Print the policy for an account of GitHub's container hooks")
    .option(
      '--name <name>',
      'Name of the policy for pods and of its binding; the policy for claims has the suffix -claims',
      'holdfast-pods',
    )
    .addHelpText(
      'after',
      '\nPipe it to "kubectl apply -f -": the API server then enforces the policy for the worker. Run it with the environment of the worker: it reads\nHOLDFAST_POD_POLICY_FILE, the namespaces of runners and the images. See docs/security.md.',
    )
    .action(async (options: PodPolicyOptions) =>
      (await import('./installation/podPolicy.ts')).podPolicy(
        output,
        environment(program, terminal),
        options,
      ),
    );
  podPolicy
    .command('schema')
    .description('Print the JSON Schema of a pod policy file, for editors')
    .action(async () =>
      (await import('./installation/jsonSchemas.ts')).printJsonSchema(output, 'A pod policy'),
    );

  program
    .command('codec-server')
    .description('Run a codec server that decrypts payloads for the Temporal UI')
    .option(
      '--listen <host:port>',
      'Address to listen on; an address other than localhost needs --token-file',
      '127.0.0.1:8234',
    )
    .option(
      '--origin <url...>',
      'Allowed origins (default: that of --ui-url, or of the UI of the dev server)',
    )
    .option(
      '--token-file <path>',
      'File with the accepted bearer tokens, one per line; read again when it changes',
    )
    .addHelpText(
      'after',
      '\nIt needs HOLDFAST_CODEC_KEY_FILE. Set the codec endpoint of the UI to its address; with the Temporal CLI, add --codec-endpoint\nhttp://127.0.0.1:8234. See docs/security.md.',
    )
    .action(async (options: CodecServerFlags) => {
      const { uiUrl = terminal.env['HOLDFAST_TEMPORAL_UI_URL'] || undefined } = program.opts<{
        uiUrl?: string;
      }>();
      exit(
        await (
          await import('./installation/codecServer.ts')
        ).codecServer(output, environment(program, terminal), options, uiUrl),
      );
    });

  if (demoProgram() !== undefined)
    program
      .command('demo')
      .description('Run the demo on this machine, with a simulated CI server')
      .allowUnknownOption()
      .allowExcessArguments();
  addCompletionCommands(program, { terminal, output, exit });
  return program;
}

/** The environment with the connection's options written into it, for those that read nothing else; without what only this command reads. */
function environment(program: Command, { env }: Terminal): Record<string, string | undefined> {
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
