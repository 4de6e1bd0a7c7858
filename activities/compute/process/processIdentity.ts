/**
 * Identity of a process. A PID alone is not one, because the kernel reuses it after the process has
 * ended. The PID and the start time of the process are an identity that every process on the
 * machine can check.
 */
import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { hasCode } from './atomicFile.ts';

/** Identity of exactly one process. */
export interface ProcessIdentity {
  readonly pid: number;
  /**
   * Start time for comparisons. On Linux: boot ID and clock ticks since boot; on macOS: the start
   * date. If it is absent, it is unknown and matches nothing.
   */
  readonly startTime?: string;
}

/**
 * Environment variable of every process of a pod with the pod's UID, so that descendants are
 * recognized in any session.
 */
export const POD_UID_VARIABLE = 'HOLDFAST_POD_UID';

/** Returns the start times of those processes that are running. Zombies are left out. */
export async function startTimes(pids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  if (pids.length === 0) return new Map();
  return process.platform === 'linux' ? startTimesFromProc(pids) : startTimesFromPs(pids);
}

/** Returns the identity of a running process. */
export async function identify(pid: number): Promise<ProcessIdentity> {
  const startTime = (await startTimes([pid])).get(pid);
  return startTime === undefined ? { pid } : { pid, startTime };
}

/** Returns whether exactly this process is running, not a later one with its PID. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (
    identity.startTime !== undefined &&
    (await startTimes([identity.pid])).get(identity.pid) === identity.startTime
  );
}

/**
 * Sends a signal to exactly this process, or with `group` to the process group that it leads.
 * @returns `false` if the process has ended, and then sends nothing, because its PID may belong to
 * another process
 */
export async function signalProcess(
  identity: ProcessIdentity,
  signal: NodeJS.Signals,
  options: { group?: boolean } = {},
): Promise<boolean> {
  if (!(await isAlive(identity))) return false;
  return sendSignal(options.group === true ? -identity.pid : identity.pid, signal);
}

/**
 * Sends a signal. A process or group that has just ended is not an error.
 * @returns whether the signal was sent
 */
export function sendSignal(target: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    // macOS returns EPERM for a group whose only members are zombies.
    if (hasCode(error, 'ESRCH') || (target < 0 && hasCode(error, 'EPERM'))) return false;
    throw error;
  }
}

/**
 * Kills all remaining processes of a pod: those with the pod's UID in their environment, in any
 * session or group. As in a container, no process outlives the first one. Linux only: macOS does
 * not show the environment of other processes reliably, so daemons of a job that left the process
 * group keep running there.
 */
export async function killLeftovers(uid: string): Promise<void> {
  if (process.platform !== 'linux') return;
  const marker = `\0${POD_UID_VARIABLE}=${uid}\0`;
  // Repeat until nothing is found, because a process may fork while its siblings are killed. The
  // number of rounds is limited, because a process that hangs in the kernel (state D) ends only
  // when the kernel releases it.
  for (let round = 0; round < 20; round++) {
    let found = 0;
    for (const entry of await readdir('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      // A process that cannot be read is not one of the pod: it has ended, or belongs to another
      // user or to the kernel.
      const environment = await readFile(`/proc/${entry}/environ`, 'utf8').catch(() => undefined);
      if (environment === undefined || !`\0${environment}`.includes(marker)) continue;
      if (sendSignal(Number(entry), 'SIGKILL')) found++;
    }
    if (found === 0) return;
    await setTimeout(10);
  }
}

async function startTimesFromProc(pids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  // Start times count from boot. Without the boot ID, one from before a reboot could match by
  // chance.
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const found = await Promise.all(
    pids.map(async (pid) => {
      const ticks = parseProcStat(await readProc(`/proc/${pid}/stat`));
      return ticks === undefined ? [] : [[pid, `${boot}:${ticks}`] as const];
    }),
  );
  return new Map(found.flat());
}

/**
 * Returns field 22 of proc_pid_stat(5), the start time. Returns `undefined` for no process, a
 * zombie or a dead process (field 3).
 */
export function parseProcStat(stat: string | undefined): string | undefined {
  if (stat === undefined) return undefined;
  // Field 2 is the name of the command in parentheses, which may contain spaces and parentheses
  // itself.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .trim()
    .split(' ');
  const state = fields[0];
  return state === 'Z' || state === 'X' || state === 'x' ? undefined : fields[19];
}

async function readProc(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    // The process has ended, before or during the read.
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}

async function startTimesFromPs(pids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  try {
    const { stdout } = await promisify(execFile)(
      'ps',
      ['-o', 'pid=,stat=,lstart=', '-p', pids.join(',')],
      {
        env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
      },
    );
    return parsePs(stdout);
  } catch (error) {
    // ps exits with 1 if none of the processes exists.
    if ((error as { code?: unknown }).code === 1) return new Map();
    throw error;
  }
}

/** Parses the lines of `ps -o pid=,stat=,lstart=`, without zombies. */
export function parsePs(output: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const line of output.split('\n')) {
    const match = /^\s*(\d+)\s+(\S+)\s+(\S.*?)\s*$/.exec(line);
    if (match && !match[2]!.startsWith('Z')) found.set(Number(match[1]), match[3]!);
  }
  return found;
}
