import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { signalTree } from './processTree.ts';

/**
 * Time between SIGINT and SIGTERM, and between SIGTERM and SIGKILL (ms), as in the official
 * runner's ProcessInvoker.
 */
export interface StopTimes {
  interruptMs: number;
  terminateMs: number;
}

/**
 * Time to read output after the end of the process while a descendant keeps the pipe open (ms), as
 * in the official runner.
 */
const DRAIN_MS = 5000;

/**
 * Runs one process of a job (its command, or a hook) and can stop it in the three steps of the
 * official runner.
 */
export class JobProcess {
  readonly #child: ChildProcess;
  readonly #times: StopTimes;
  readonly #timers: NodeJS.Timeout[] = [];
  /**
   * Exit code: `null` if a signal ended the process, -1 if it could not start. 128 + n is an exit
   * code of the shell.
   */
  readonly ended: Promise<number | null>;

  constructor(
    file: string,
    args: string[],
    options: {
      env: NodeJS.ProcessEnv;
      cwd: string;
      times: StopTimes;
      onLine: (line: string) => void;
    },
  ) {
    this.#times = options.times;
    this.#child = spawn(file, args, {
      env: options.env,
      cwd: options.cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', options.onLine);
    }
    this.ended = new Promise((resolve) => {
      const finish = (code: number | null): void => {
        for (const timer of this.#timers) clearTimeout(timer);
        resolve(code);
      };
      this.#child.once('error', (error) => {
        options.onLine(`Error: ${error.message}`);
        finish(-1);
      });
      this.#child.once('exit', (code) =>
        this.#timers.push(setTimeout(() => finish(code), DRAIN_MS)),
      );
      this.#child.once('close', (code) => finish(code));
    });
  }

  /** SIGINT to the whole tree, then SIGTERM, then SIGKILL. */
  stop(): void {
    this.#signal('SIGINT');
    this.#timers.push(
      setTimeout(() => this.#signal('SIGTERM'), this.#times.interruptMs),
      setTimeout(() => this.#signal('SIGKILL'), this.#times.interruptMs + this.#times.terminateMs),
    );
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid !== undefined && exitCode === null && signalCode === null) signalTree(pid, signal);
  }
}
