/** Implements `holdfast demo`, which starts a separate program by its path. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { CliError } from '../shared/exit.ts';
import { demoProgram } from './demoProgram.ts';

/**
 * Runs the demo on this terminal.
 * @returns its exit status, or 128 plus the number of the signal that ended it
 * @throws CliError `failed` if the demo is not installed or cannot be started
 */
export function demo(args: readonly string[]): Promise<number> {
  const program = demoProgram();
  if (program === undefined)
    throw new CliError(
      'failed',
      'the demo is not part of this installation; run "npm run demo" in a checkout of the sources',
    );
  return runProgram(process.execPath, [program, ...args]);
}

/**
 * Runs a program on this terminal and passes SIGINT, SIGTERM and SIGHUP on to it.
 * @returns its exit status, or 128 plus the number of the signal that ended it
 * @throws CliError `failed` if it cannot be started
 */
export function runProgram(command: string, args: readonly string[]): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit' });
  const pass = (signal: NodeJS.Signals): void => {
    // Ctrl-C reaches the child through the terminal; passed on, it would arrive twice.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, pass);
  return new Promise<number>((resolve, reject) => {
    child.once('error', (error) =>
      reject(
        new CliError('failed', `failed to start ${command}: ${error.message}`, { cause: error }),
      ),
    );
    child.once('exit', (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  }).finally(() => {
    for (const signal of signals) process.off(signal, pass);
  });
}
