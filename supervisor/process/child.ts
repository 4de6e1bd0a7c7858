import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { ChildEnd } from './exitStatus.ts';
import { readProcess } from './processTable.ts';

/** So that a job which takes every core does not starve the supervisor, nor the probes that it answers. */
const CHILD_NICE = 5;
/** A fork that was under way at the first look has been made by then, in ms. */
const RECHECK_MS = 250;

/**
 * Callbacks for the start and the end of a child process. `failed` is called instead of the others
 * if it could not be started.
 */
export interface ChildHandlers {
  readonly spawned: (pid: number) => void;
  readonly failed: (message: string) => void;
  readonly exited: (end: ChildEnd) => void;
}

/** `null`: it goes where ours goes, or there is no process. */
export interface OutputPipes {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
}

const NO_PIPES: OutputPipes = { stdout: null, stderr: null };

/**
 * Output streams of a process that are piped to the supervisor. The others are inherited. `merged`:
 * both go to the supervisor's standard output. A socket: both go there.
 */
export type OutputMode = 'nothing' | 'stdout' | 'both' | 'merged' | Socket;

function stdioOf(mode: OutputMode): StdioOptions {
  switch (mode) {
    case 'nothing':
      return 'inherit';
    case 'merged':
      return ['inherit', 1, 1];
    case 'stdout':
      return ['inherit', 'pipe', 'inherit'];
    case 'both':
      return ['inherit', 'pipe', 'pipe'];
    default:
      return ['inherit', mode, mode];
  }
}

/**
 * Starts a process as the leader of a session, hence of a process group, of its own.
 * @returns what is piped of it
 */
export function startChild(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  piped: OutputMode,
  handlers: ChildHandlers,
): OutputPipes {
  const [file = '', ...args] = command;
  let child: ChildProcess;
  try {
    // Node's "pipe" is a socket, which nobody can open by way of /proc: no process of a job writes what the log says.
    child = spawn(file, args, {
      env,
      detached: true,
      stdio: stdioOf(piped),
    });
  } catch (error) {
    handlers.failed((error as Error).message); // too long a command line, for one
    return NO_PIPES;
  }
  const { pid } = child;
  child.on('error', (error) => {
    if (pid === undefined) handlers.failed(error.message);
  });
  if (pid === undefined) return NO_PIPES;
  lowerPriority(pid);
  const again = setTimeout(() => lowerPriority(pid), RECHECK_MS).unref();
  // Not `close`: that waits for everybody who holds the pipe.
  child.on('exit', (code, signal) => {
    clearTimeout(again);
    handlers.exited({ code, signal });
  });
  handlers.spawned(pid);
  return child;
}

/**
 * Node cannot start a process with a priority: set it at once, on what it may have forked in the meantime, too. What it is just forking
 * has the old one, and is in no list yet.
 */
function lowerPriority(pid: number): void {
  const row = readProcess(pid);
  if (row === undefined) return;
  try {
    if (row.nice < CHILD_NICE) setPriority(pid, CHILD_NICE);
    for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')) {
      if (child !== '') lowerPriority(Number(child));
    }
  } catch (error) {
    // It ended meanwhile, or the kernel keeps no list of children: children inherit, only those of the first moment are missed.
    const { code, info } = error as NodeJS.ErrnoException & { info?: { code: string } };
    if (!['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(info?.code ?? code ?? '')) throw error;
  }
}
