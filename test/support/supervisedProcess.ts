import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { bundleSupervisor } from '../../deploy/images/supervisorFolder.ts';
import { markedProcesses } from './markedProcesses.ts';
import { until } from './until.ts';

const TINI = '/usr/bin/tini-static';

/**
 * `container`: as in a pod, with tini as PID 1 of a PID namespace. `shared`: under a tini that is
 * not PID 1 (hostPID, shared process namespace). `bare`: without an init process.
 */
export type Placement = 'container' | 'shared' | 'bare';

/** Commands that start the supervisor, for each placement. */
const PARENTS: Readonly<Record<Placement, readonly string[]>> = {
  bare: [],
  shared: [TINI, '-s', '--'],
  container: ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child', TINI, '-s', '--'],
};

/** A PID namespace needs root. Without it only the other two can be tested. */
export const PLACEMENTS: readonly Placement[] =
  process.getuid?.() === 0 && existsSync(TINI) ? ['container', 'shared', 'bare'] : ['bare'];

export interface Log {
  component: string;
  level: string;
  msg: string;
}

/** Bundles the supervisor once, as it is shipped. */
export async function supervisorBundle(): Promise<{
  file: string;
  folder: string;
  remove(): void;
}> {
  const folder = mkdtempSync(join(tmpdir(), 'supervisor-test-'));
  const file = join(folder, 'supervisor.mjs');
  await bundleSupervisor(file);
  return { file, folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A supervisor under test, with its command's output and its own log lines. */
export class SupervisedProcess {
  readonly process: ChildProcess;
  /** Resolves when it has ended and all its output has been read. */
  readonly closed: Promise<unknown>;
  readonly #token = `HOLDFAST_TEST_TOKEN=${process.pid}-${Math.random()}`;
  readonly #placement: Placement;
  readonly #stdout: Buffer[] = [];
  #reads = false;
  #stderr = '';

  /** @param as - user and group that it runs as; needs root */
  constructor(
    bundle: string,
    placement: Placement,
    args: readonly string[],
    env: Record<string, string> = {},
    as?: { uid: number; gid: number },
  ) {
    this.#placement = placement;
    const supervisor = [process.execPath, bundle, ...args];
    const [file = '', ...rest] = [...PARENTS[placement], ...supervisor];
    const [name = '', value = ''] = this.#token.split('=');
    // The supervisor gets no variables of the test's own Node.
    this.process = spawn(file, rest, {
      env: { PATH: process.env['PATH'] ?? '', TMPDIR: dirname(bundle), [name]: value, ...env },
      stdio: 'pipe',
      ...as,
    });
    this.closed = once(this.process, 'close');
    this.process.stderr?.on('data', (text: Buffer) => (this.#stderr += text.toString()));
  }

  /** Collects the standard output, which is otherwise not read. */
  reading(): this {
    this.#reads = true;
    this.process.stdout?.on('data', (bytes: Buffer) => this.#stdout.push(bytes));
    return this;
  }

  get stdout(): Buffer {
    return Buffer.concat(this.#stdout);
  }

  /** The supervisor's log lines. Other output on standard error is left out. */
  get logs(): Log[] {
    return this.#stderr
      .split('\n')
      .filter((line) => line.startsWith('{"component"'))
      .map((line) => JSON.parse(line) as Log);
  }

  get errors(): string[] {
    return this.logs.filter(({ level }) => level === 'error').map(({ msg }) => msg);
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Settles when the command has printed this. */
  async printed(text: string): Promise<void> {
    await until(
      `"${text}" to be printed`,
      () => this.stdout.includes(text),
      () => `${this.stdout.toString()}${this.#stderr}`,
    );
  }

  async logged(text: string): Promise<void> {
    await until(
      `"${text}" to be logged`,
      () => this.#stderr.includes(text),
      () => this.#stderr,
    );
  }

  /** Sends a signal like the kubelet: to the init process, if there is one. */
  signal(signal: NodeJS.Signals): void {
    const { initPid } = this;
    // PID 0 would be the process group of the tests.
    if (initPid === 0) throw new Error(`nobody is there to get ${signal}: ${this.#stderr}`);
    process.kill(initPid, signal);
  }

  /** Process id of the init process, or of the supervisor, in the namespace of this test. */
  get initPid(): number {
    const { pid = 0 } = this.process;
    return this.#placement === 'container' ? (childrenOf(pid)[0] ?? 0) : pid;
  }

  get supervisorPid(): number {
    return this.#placement === 'bare' ? this.initPid : (childrenOf(this.initPid)[0] ?? 0);
  }

  /** How it ended. */
  async ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    if (this.process.exitCode === null && this.process.signalCode === null)
      await once(this.process, 'exit');
    // Its last output is read one or two turns later. Other processes may hold its end of the pipes
    // open.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    if (!this.#reads) this.process.stdout?.destroy(); // otherwise it would keep the test's own process
    return { code: this.process.exitCode, signal: this.process.signalCode };
  }

  /** Exit status; 128+n for a signal, as a container runtime shows it. */
  async status(): Promise<number> {
    const { code, signal } = await this.ended();
    const numbers: Record<string, number> = {
      SIGHUP: 129,
      SIGINT: 130,
      SIGQUIT: 131,
      SIGKILL: 137,
      SIGTERM: 143,
    };
    return code ?? numbers[signal ?? ''] ?? -1;
  }

  /** Returns the command lines of started processes that still run. */
  leftovers(): string[] {
    return markedProcesses(this.#token).map(({ command }) => command);
  }
}

export function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`)
    .split(' ')
    .filter((text) => text !== '')
    .map(Number);
}

/** Whether the process has a handler of its own for the signal. */
export function handles(pid: number, number: number): boolean {
  const mask = /SigCgt:\s*([0-9a-f]+)/.exec(read(`/proc/${pid}/status`))?.[1];
  return mask !== undefined && ((BigInt(`0x${mask}`) >> BigInt(number - 1)) & 1n) === 1n;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}
