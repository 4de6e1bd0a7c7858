#!/usr/bin/env node
/**
 * The simulator's runner program. It behaves, prints and exits as GitHub's `run.sh` does, with the
 * simulator's protocol; with `configure` as first argument as `config.sh` does. It needs only
 * Node.js and the folder `runner/`, so that both can be copied into any image with Node.js.
 */
import { Listener } from './runner/listener.ts';
import { configure } from './runner/registration.ts';
import { readConfiguration, readSettings } from './runner/settings.ts';

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

// The reader of the log may have ended; the job continues.
process.stdout.on('error', () => undefined);

async function main(): Promise<number> {
  const [command, ...options] = process.argv.slice(2);
  let listener: Listener;
  try {
    if (command === 'configure')
      return await configure(readConfiguration(process.env, options), process.cwd(), print);
    listener = new Listener(readSettings(process.env, process.argv.slice(2)), print);
  } catch (error) {
    print(`An error occurred: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => listener.stop());
  return listener.run();
}

process.exit(await main());
