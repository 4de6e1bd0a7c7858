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

const STATUSES = `
Exit status:
  0    done; with "run": the outcome is succeeded
  1    the command failed, or the outcome is another one
  2    bad usage, input or settings: nothing was done
  3    no such runner, set or job, or it has ended already
  4    Temporal does not answer
  5    a runner or job with this id exists already; somebody else's sweep runs
  129  130  143   ended by SIGHUP, SIGINT, SIGTERM`;

const EXAMPLES = `
Examples:
  $ holdfast doctor                                        what is missing before runners can work?
  $ holdfast worker                                        run the worker
  $ holdfast run --repo acme/app --labels linux,x64        one runner, attached until its job is done
  $ holdfast runner start --org acme --static --name big   a runner that takes many jobs
  $ holdfast top                                           everything that runs, at a glance
  $ holdfast runner list --phase Busy --watch
  $ holdfast runner drain runner-big --wait
  $ holdfast set apply -f sets.yaml --dry-run              sets of runners, from a file: what would change?
  $ holdfast set list -o wide
  $ holdfast job run -f job.yaml --attach                  a job of several steps: pre, test, post
  $ holdfast sweep --dry-run                               what has been left behind?

Settings come from the environment and profile files that the Temporal CLI reads (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
TEMPORAL_PROFILE, …), and HOLDFAST_TASK_QUEUE and HOLDFAST_TEMPORAL_UI_URL. Options win.`;

/** Parses the arguments and runs the command. @param args - without the program's name @returns the status to exit with */
export async function holdfast(args: readonly string[], terminal: Terminal): Promise<number> {
  const output = new Output(terminal, outputForm(args));
  try {
    // Its arguments belong to the demo, all of them.
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
    .version(packageVersion(), '-V, --version', 'print the version')
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
      new Option('--profile <name>', 'profile of temporal.toml (TEMPORAL_PROFILE)').helpGroup(
        'Connection:',
      ),
    )
    .addOption(
      new Option(
        '--task-queue <name>',
        'task queue of the runners (HOLDFAST_TASK_QUEUE, default "holdfast")',
      ).helpGroup('Connection:'),
    )
    .addOption(
      new Option('--ui-url <url>', "Temporal's UI, for links (HOLDFAST_TEMPORAL_UI_URL)").helpGroup(
        'Connection:',
      ),
    )
    .addOption(
      new Option(
        '-o, --output <form>',
        'text, wide (more columns), name (ids alone), or one document as json or yaml, errors and progress as JSON lines on stderr',
      ).choices(OUTPUT_FORMS),
    )
    .addOption(new Option('--json', 'the same as --output json').conflicts('output'))
    .hook('preAction', (_program, command) => refuseNames(output, command))
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      // Errors are printed once, by us; this is the help that stands in for a missing command.
      writeErr: (text) => void (output.json || terminal.stderr.write(text)),
      outputError: () => {},
    })
    .exitOverride()
    .addHelpText('after', EXAMPLES)
    .addHelpText('after', STATUSES);

  program
    .command('worker')
    .description(
      'run the worker: takes care of runners until SIGTERM or SIGINT; never cancels a runner',
    )
    .addHelpText(
      'after',
      '\nAll its settings are environment variables: docs/configuration.md lists them, "holdfast doctor" checks them.',
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
    .description(
      "receive GitHub's webhook in a process of its own, until SIGTERM or SIGINT; needs the webhook's secret and Temporal, no credential and no cluster",
    )
    .addHelpText(
      'after',
      '\nA worker that has the secret receives as well: this is for a process that strangers may reach. Its settings: docs/configuration.md.',
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
  addSweepCommand(program, { terminal, output, exit }, () => environment(program, terminal));

  program
    .command('doctor')
    .description(
      'check settings, Temporal, its search attributes, the compute and its permissions; say how to mend what is wrong',
    )
    .addHelpText(
      'after',
      '\nRun it where the worker runs, with the same environment. Exit status 0: runners can work; 1: they cannot; 2: the settings are wrong.',
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
    .description(
      "print the worker's pod policy as a ValidatingAdmissionPolicy, for kubectl apply: the API server then holds the worker to it",
    )
    .option('--service-account <namespace/name>', "the worker's service account (required)")
    .option(
      '--name <name>',
      'name of the policy for pods and of its binding; that for claims has -claims behind it',
      'holdfast-pods',
    )
    .addHelpText(
      'after',
      '\nRun it with the environment of the worker: HOLDFAST_POD_POLICY_FILE, HOLDFAST_KUBERNETES_NAMESPACE and the images are what it reads. See docs/security.md.',
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
    .description("print the JSON Schema of a pod policy's file, for editors")
    .action(async () =>
      (await import('./installation/jsonSchemas.ts')).printJsonSchema(output, 'A pod policy'),
    );

  program
    .command('codec-server')
    .description(
      "let Temporal's UI and command line show what is encrypted (HOLDFAST_CODEC_KEY_FILE), until SIGTERM or SIGINT",
    )
    .option(
      '--listen <host:port>',
      'address; other than of this machine it needs --token-file',
      '127.0.0.1:8234',
    )
    .option(
      '--origin <url...>',
      "origins of pages that may ask (default: that of --ui-url, or of the dev server's UI)",
    )
    .option(
      '--token-file <path>',
      'who asks needs a bearer token: a line of this file, read again when it changes',
    )
    .addHelpText(
      'after',
      '\nIn the UI set the codec endpoint to its address; elsewhere: temporal workflow show --codec-endpoint http://127.0.0.1:8234 … See docs/security.md.',
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
      .description(
        'show everything on this machine, with a simulated CI server; its own options: holdfast demo --help',
      )
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
