import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { ChildEnd } from './exitStatus.ts';
import { readProcess } from './processTable.ts';

/**
 * Niceness of the child, so that a job which uses every core does not starve the supervisor and its
 * probes.
 */
const CHILD_NICE = 5;
/**
 * Time after which the priority is set a second time (ms). A fork that was in progress the first
 * time has completed by then.
 */
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

/** Piped output streams. `null` if the stream is inherited, or there is no process. */
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
 * Starts a process as the leader of a session of its own, and so of a process group of its own.
 * @returns the piped output streams
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
    // Node's "pipe" is a socket, which cannot be opened through /proc, so no process of a job can
    // write to the log.
    child = spawn(file, args, {
      env,
      detached: true,
      stdio: stdioOf(piped),
    });
  } catch (error) {
    handlers.failed((error as Error).message); // For example, the command line is too long.
    return NO_PIPES;
  }
  const { pid } = child;
  child.on('error', (error) => {
    if (pid === undefined) handlers.failed(error.message);
  });
  if (pid === undefined) return NO_PIPES;
  lowerPriority(pid);
  const again = setTimeout(() => lowerPriority(pid), RECHECK_MS).unref();
  // Not `close`, which waits for every process that has the pipe open.
  child.on('exit', (code, signal) => {
    clearTimeout(again);
    handlers.exited({ code, signal });
  });
  handlers.spawned(pid);
  return child;
}

/**
 * Lowers the priority of a process. Node cannot start a process with a priority, so it is set
 * immediately afterwards, including on children that were forked in the meantime. A child that is
 * being forked at that moment has the old priority and is not listed yet.
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
    // The process has ended meanwhile, or the kernel keeps no list of children. Children inherit
    // the priority, so only those of the first moment are missed.
    const { code, info } = error as NodeJS.ErrnoException & { info?: { code: string } };
    if (!['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(info?.code ?? code ?? '')) throw error;
  }
}
