/** Measures a command as in a container: PID 1 of a PID namespace, with a small child program. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { cleanEnvironment, end, track } from './child.ts';

/** Measurement of one run. */
export interface Sample {
  /** Time from before the first process is created until the program's first output. */
  readonly startMs: number;
  /** Resident memory of all processes except the program. */
  readonly rssMiB: number;
  /** Time from SIGTERM to PID 1 until all processes have ended. The program itself ends at once. */
  readonly exitMs: number;
}

/**
 * Program that prints a line and waits for input that never arrives. It has a handler, because
 * PID 1 does not get a signal without one.
 */
const PROGRAM = ['/bin/sh', '-c', 'trap "exit 0" TERM; echo up; read line'];
const NAMESPACE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'];
/** Time after the start until memory is measured (ms). */
const SETTLING_MS = 200;

/**
 * Measures one run.
 * @param init - command that starts the program, with its `--`. Empty: the program alone
 * @throws Error if PID namespaces are not available
 */
export async function sample(
  init: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Sample> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    throw new Error('PID namespaces require Linux and root');
  const [file = '', ...args] = [...NAMESPACE, ...init, ...PROGRAM];
  const startedAt = performance.now();
  // The input stays open, because the program waits for it.
  const outer = track(
    spawn(file, args, {
      env: { ...cleanEnvironment(/^PATH$/), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    }),
  );
  let errors = '';
  outer.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const exited = once(outer, 'exit');
  try {
    await Promise.race([
      once(outer.stdout, 'data'),
      exited.then(([status]) =>
        Promise.reject(
          new Error(`${init[0] ?? PROGRAM[0]} ended with status ${status}: ${errors}`),
        ),
      ),
    ]);
    const startMs = performance.now() - startedAt;
    await delay(SETTLING_MS);
    const [first] = childrenOf(outer.pid);
    if (first === undefined) throw new Error(`unshare has no child process: ${errors}`);
    const rssMiB = residentMiB(first);
    const signalledAt = performance.now();
    process.kill(first, 'SIGTERM');
    await exited;
    return { startMs, rssMiB, exitMs: performance.now() - signalledAt };
  } finally {
    if (outer.pid !== undefined) await end(outer, 'SIGKILL');
  }
}

function childrenOf(pid: number | undefined): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter((word) => word !== '')
    .map(Number);
}

/** Returns the resident memory of a process and its descendants, without the program. */
function residentMiB(pid: number): number {
  if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(PROGRAM.join('\0'))) return 0;
  const [, kiB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return childrenOf(pid).reduce((sum, child) => sum + residentMiB(child), Number(kiB) / 1_024);
}
