import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Terminal } from '../../cli/shared/output.ts';
import { holdfast } from '../../cli/program.ts';
import { until } from './until.ts';

/** Output and exit status of a command. */
export interface CliRun {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Returns a terminal that records its output. */
export function recordingTerminal(
  env: Record<string, string> = {},
  tty = false,
): Terminal & { written: { stdout: string; stderr: string } } {
  const written = { stdout: '', stderr: '' };
  return {
    written,
    env,
    interactive: false,
    stdout: { isTTY: tty, columns: 80, write: (text: string) => void (written.stdout += text) },
    stderr: { isTTY: tty, columns: 80, write: (text: string) => void (written.stderr += text) },
  };
}

/** Runs `holdfast` in this process. */
export async function runCli(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<CliRun> {
  const terminal = recordingTerminal(env);
  const status = await holdfast(args, terminal);
  return { status, ...terminal.written };
}

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** `holdfast` as a separate process, for tests of signals and exit statuses. */
export class CliProcess {
  stdout = '';
  stderr = '';
  readonly child: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;

  /** @param onTerminal - whether its standard input is a terminal, as of a person's shell */
  constructor(
    args: readonly string[],
    env: Record<string, string> = {},
    { onTerminal = false }: { onTerminal?: boolean } = {},
  ) {
    const words = [fileURLToPath(new URL('../../cli/main.ts', import.meta.url)), ...args];
    const options = { env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env } };
    // util-linux's `script` creates the terminal. Output goes to its pipes, as if redirected.
    this.child = onTerminal
      ? spawn(
          'script',
          [
            '-qec',
            `exec ${[process.execPath, ...words].map(quote).join(' ')} >&3 2>&4`,
            '/dev/null',
          ],
          {
            ...options,
            stdio: ['pipe', 'ignore', 'ignore', 'pipe', 'pipe'],
          },
        )
      : spawn(process.execPath, words, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const [, , , shown, noted] = this.child.stdio;
    (onTerminal ? shown : this.child.stdout)?.on(
      'data',
      (data: Buffer) => (this.stdout += data.toString()),
    );
    (onTerminal ? noted : this.child.stderr)?.on(
      'data',
      (data: Buffer) => (this.stderr += data.toString()),
    );
    this.exited = new Promise((resolve) =>
      this.child.once('close', (code, signal) => resolve({ code, signal })),
    );
  }

  async prints(pattern: RegExp): Promise<void> {
    await until(
      `holdfast to print ${pattern.source}`,
      () => pattern.test(this.stdout) || pattern.test(this.stderr),
      () => `${this.stdout}${this.stderr}`,
      150_000,
    );
  }

  /** Presses Ctrl-C on its terminal, which sends SIGINT. */
  pressCtrlC(): void {
    this.child.stdin?.write('\u0003');
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}
