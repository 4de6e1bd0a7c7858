/** One command as in a container: PID 1 of a PID namespace of its own, with a small program under it that tells when it runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { cleanEnvironment, end, track } from './child.ts';

export interface Sample {
  /** From before the first process is made until the program's first output. */
  readonly startMs: number;
  /** Of everything but the program. */
  readonly rssMiB: number;
  /** From SIGTERM to PID 1 until all is gone. The program itself ends at once. */
  readonly exitMs: number;
}

/** Tells that it runs, and waits for a line that never comes. A PID 1 without a handler would not get the signal. */
const PROGRAM = ['/bin/sh', '-c', 'trap "exit 0" TERM; echo up; read line'];
const NAMESPACE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'];
/** So that what is allocated at the start only is freed again or counted. */
const SETTLING_MS = 200;

/** @param init what the program is started by, its own `--` included; empty: nothing. @throws Error where there are no namespaces */
export async function sample(
  init: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Sample> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    throw new Error('a PID namespace of its own takes Linux and root');
  const [file = '', ...args] = [...NAMESPACE, ...init, ...PROGRAM];
  const startedAt = performance.now();
  // Its input stays open: the program waits for it.
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
    if (first === undefined) throw new Error(`unshare runs nothing: ${errors}`);
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

/** Of a process and all below it, without the program (which has nothing below it). */
function residentMiB(pid: number): number {
  if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(PROGRAM.join('\0'))) return 0;
  const [, kiB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return childrenOf(pid).reduce((sum, child) => sum + residentMiB(child), Number(kiB) / 1_024);
}
