import type { StoppingSignal } from './signals/events.ts';
import { EXIT_NOT_RUN } from './process/exitStatus.ts';
import { eventLog } from './records/eventLog.ts';
import { readOptions, UsageError } from './settings/options.ts';
import { Output } from './records/output.ts';
import { Pending } from './process/pending.ts';
import { helpText } from './settings/settings.ts';
import { Supervisor } from './process/supervisor.ts';

/** Signals that stop the command. */
const STOPPING: readonly StoppingSignal[] = ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP'];
/** Signals that only the command handles. SIGUSR1 would start Node's debugger in the supervisor. */
const OTHERS: readonly NodeJS.Signals[] = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'];

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), process.env);
  if (options === undefined) return new Output(1, new Pending()).write(Buffer.from(helpText()));
  const supervisor = new Supervisor(options);
  for (const signal of STOPPING) process.on(signal, () => supervisor.stop(signal));
  for (const signal of OTHERS) process.on(signal, () => supervisor.forwardSignal(signal));
  process.on('uncaughtException', (error) => supervisor.failed(error));
  await supervisor.start();
}

main().catch(async (error: unknown) => {
  const output = new Output(2, new Pending());
  const log = eventLog(output);
  const problems =
    error instanceof UsageError ? error.problems : [(error as Error).stack ?? String(error)];
  for (const problem of problems) log('error', `Could not start the process: ${problem}`);
  await output.drained();
  process.exit(EXIT_NOT_RUN);
});
