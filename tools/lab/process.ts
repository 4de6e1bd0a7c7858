import { spawn, execFile } from 'node:child_process';
import { open, readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';

/** A process for sure: a pid may be used again, a pid with its start time not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque; from /proc, or from ps where there is no /proc. */
  readonly startTime: string;
}

/** Of the operating system. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

const run = promisify(execFile);

/**
 * Returns the start time of a live process; `undefined` if there is none, or only a zombie. It is
 * field 22 of /proc/PID/stat, counted after the closing bracket of the command, which can contain
 * spaces and brackets.
 */
export async function processStartTime(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    if (stat === undefined) return undefined;
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') {
      // While other threads of a killed process are still ending, its leader is already a zombie,
      // and its sockets are still open.
      const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
      if (threads.length <= 1) return undefined;
    }
    return fields[19];
  }
  const answer = await run('ps', ['-o', 'stat=,lstart=', '-p', String(pid)]).catch(() => undefined);
  const line = answer?.stdout.trim();
  return line === undefined || line === '' || line.startsWith('Z')
    ? undefined
    : line.replace(/^\S+\s+/, '');
}

export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await processStartTime(identity.pid)) === identity.startTime;
}

/**
 * Starts a process that outlives this one: in a session of its own, so that Ctrl-C does not reach
 * it, with its output appended to a file.
 * @throws Error if the command cannot be executed
 */
export async function startDetached(
  command: string,
  args: readonly string[],
  options: { log: string; cwd: string; env: NodeJS.ProcessEnv; user?: User },
): Promise<ProcessIdentity> {
  const log = await open(options.log, 'a');
  try {
    await log.write(`--- ${new Date().toISOString()} ${[command, ...args].join(' ')}\n`);
    const child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      cwd: options.cwd,
      env: options.env,
      ...options.user,
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.on('error', () => undefined); // a failed kill() of a child is reported by stopProcess
    child.unref();
    const pid = child.pid as number;
    // A process that has already ended gets an identity that never matches.
    return { pid, startTime: (await processStartTime(pid)) ?? 'dead' };
  } finally {
    await log.close();
  }
}

/**
 * Signals exactly this process and waits until it has ended. Kills it after `withinMs`.
 * @returns false if it was killed
 */
export async function stopProcess(
  identity: ProcessIdentity,
  signal: NodeJS.Signals,
  withinMs: number,
): Promise<boolean> {
  const send = async (what: NodeJS.Signals): Promise<void> => {
    if (await isAlive(identity)) {
      try {
        process.kill(identity.pid, what);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  };
  await send(signal);
  if (await waitFor(async () => !(await isAlive(identity)), withinMs)) return true;
  await send('SIGKILL');
  if (!(await waitFor(async () => !(await isAlive(identity)), 10_000)))
    throw new Error(`process ${identity.pid} survives SIGKILL`);
  return false;
}

/** Polls a condition, first every 10 ms, later every 100 ms. Returns false after `withinMs`. */
export async function waitFor(
  condition: () => Promise<boolean>,
  withinMs: number,
): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 100)) {
    if (await condition()) return true;
    if (performance.now() >= deadline) return false;
    await delay(pause);
  }
}

/** The last lines of a log, for an error message. */
export async function logTail(path: string, lines = 15): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const tail = text.trimEnd().split('\n').slice(-lines);
  return tail.map((line) => (line.length > 300 ? `${line.slice(0, 300)}…` : line)).join('\n');
}
