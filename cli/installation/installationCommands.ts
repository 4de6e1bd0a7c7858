/** Commands about an installation: its processes, checks, policies and codec server. */
import type { Command } from 'commander';
import type { CommandContext } from '../shared/commandContext.ts';
import type { CodecServerFlags } from './codecServer.ts';
import { demoProgram } from './demoProgram.ts';
import type { PodPolicyOptions } from './podPolicy.ts';

/** Environment variables of a process that a command starts or checks. */
export type Environment = Record<string, string | undefined>;

/** Adds the commands that run a process. @param env - with the connection's options */
export function addProcessCommands(
  program: Command,
  context: CommandContext,
  env: () => Environment,
): void {
  program
    .command('worker')
    .description('Run the worker until SIGTERM or SIGINT')
    .addHelpText(
      'after',
      '\nIts settings are environment variables: see docs/configuration.md; "holdfast doctor" checks them. A worker that stops cancels no runner.',
    )
    .action(async () =>
      context.exit(
        await (await import('../../worker/process/run.ts')).runWorkerProcess({ env: env() }),
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
      context.exit(
        await (
          await import('../../worker/webhook/webhookProcess.ts')
        ).runWebhookProcess({ env: env() }),
      ),
    );
}

/** Adds the other commands of an installation. @param env - with the connection's options */
export function addInstallationCommands(
  program: Command,
  context: CommandContext,
  env: () => Environment,
): void {
  program
    .command('doctor')
    .description('Check the settings, Temporal, the compute and its permissions')
    .addHelpText(
      'after',
      '\nRun it where the worker runs, with the same environment. It prints how to fix each problem. Exit status 0: runners can work; 1: they cannot;\n2: the settings are invalid.',
    )
    .action(async () =>
      context.exit(await (await import('./doctor.ts')).doctor(context.output, env())),
    );
  addPodPolicy(program, context, env);
  addCodecServer(program, context, env);
  if (demoProgram() !== undefined)
    program
      .command('demo')
      .description('Run the demo on this machine, with a simulated CI server')
      .allowUnknownOption()
      .allowExcessArguments();
}

function addPodPolicy(program: Command, context: CommandContext, env: () => Environment): void {
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
      (await import('./podPolicy.ts')).podPolicy(context.output, env(), options),
    );
  podPolicy
    .command('schema')
    .description('Print the JSON Schema of a pod policy file, for editors')
    .action(async () =>
      (await import('./jsonSchemas.ts')).printJsonSchema(context.output, 'A pod policy'),
    );
}

function addCodecServer(program: Command, context: CommandContext, env: () => Environment): void {
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
      const { uiUrl = context.terminal.env['HOLDFAST_TEMPORAL_UI_URL'] || undefined } =
        program.opts<{
          uiUrl?: string;
        }>();
      context.exit(
        await (await import('./codecServer.ts')).codecServer(context.output, env(), options, uiUrl),
      );
    });
}
