#!/usr/bin/env node
/** Starts the simulator of GitHub: `node tools/simulator/main.ts`. */
import { readFileSync } from 'node:fs';
import { createCommand, runCommand, wholeNumber } from '../shared/commandLine.ts';
import type { SimulatorOptions } from './options.ts';
import { startSimulator } from './simulator.ts';

interface Flags {
  readonly port?: number;
  readonly host?: string;
  readonly publicUrl?: string;
  readonly webhookUrl?: string;
  readonly webhookSecret: string;
  readonly token?: string;
  readonly state?: string;
  readonly config?: string;
}

/** Returns the simulator's options: those of the file, overridden by those of the command line. */
function simulatorOptions(flags: Flags): SimulatorOptions {
  const { port, host, publicUrl, webhookUrl, webhookSecret, token, state, config } = flags;
  return {
    ...(config === undefined ? {} : (JSON.parse(readFileSync(config, 'utf8')) as SimulatorOptions)),
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    ...(webhookUrl === undefined ? {} : { webhook: { url: webhookUrl, secret: webhookSecret } }),
    ...(token === undefined ? {} : { tokens: [{ token, name: 'default' }] }),
    ...(state === undefined ? {} : { stateFile: state }),
  };
}

async function run(flags: Flags): Promise<void> {
  const simulator = await startSimulator(simulatorOptions(flags));
  process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      void simulator.stop().then(() => process.exit(0));
    });
}

await runCommand(
  createCommand(
    'node tools/simulator/main.ts',
    "Starts a simulator of GitHub's runner API, with webhooks and faults on demand.",
  )
    .option(
      '--port <n>',
      'port to listen on (default: a free one)',
      wholeNumber({ min: 0, max: 65_535 }),
    )
    .option('--host <host>', 'address to listen on (default: "127.0.0.1")')
    .option('--public-url <url>', 'URL at which runners reach it (default: the listening address)')
    .option('--webhook-url <url>', 'URL that receives workflow_job events (default: none)')
    .option('--webhook-secret <secret>', 'secret that signs the events', '')
    .option(
      '--token <token>',
      'personal access token with access to everything (default: "ghp_simulator")',
    )
    .option('--state <file>', 'file that keeps registrations and jobs (default: none)')
    .option(
      '--config <file>',
      'JSON file with fields of SimulatorOptions; options override it (default: none)',
    )
    .addHelpText(
      'after',
      `
Prints one JSON line {"url": ...} as soon as it listens. Control API: <url>/_sim/...
Its runner program is tools/simulator/runner.ts.`,
    )
    .action(run),
);
