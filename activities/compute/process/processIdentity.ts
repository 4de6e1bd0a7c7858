/**
 * Which process is meant. A pid alone is not an identity: the kernel gives it to somebody else after the process has ended.
 * A pid together with the time its process started is, and any process on the machine can check it.
 */
import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { hasCode } from './atomicFile.ts';

/** One process, for sure. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque and comparable: on Linux boot id and clock ticks since boot, on macOS the start date. Absent: not known, matches nothing. */
  readonly startTime?: string;
}

/** In the environment of every process of a pod: names the pod's UID, so that descendants are recognised whatever session they made. */
export const POD_UID_VARIABLE = 'HOLDFAST_POD_UID';

/** When each of these processes started. Pids without a living process (a zombie does not live) are left out. */
export async function startTimes(pids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  if (pids.length === 0) return new Map();
  return process.platform === 'linux' ? startTimesFromProc(pids) : startTimesFromPs(pids);
}

/** The identity of a process that is running now. */
export async function identify(pid: number): Promise<ProcessIdentity> {
  const startTime = (await startTimes([pid])).get(pid);
  return startTime === undefined ? { pid } : { pid, startTime };
}

/** Whether exactly this process, not a later one with its pid, lives. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (
    identity.startTime !== undefined &&
    (await startTimes([identity.pid])).get(identity.pid) === identity.startTime
  );
}

/**
 * Sends a signal to exactly this process, or with `group` to the process group that it leads. Returns false, and sends
 * nothing, when the process has ended: its pid may be somebody else's by now.
 */
export async function signalProcess(
  identity: ProcessIdentity,
  signal: NodeJS.Signals,
  options: { group?: boolean } = {},
): Promise<boolean> {
  if (!(await isAlive(identity))) return false;
  return sendSignal(options.group === true ? -identity.pid : identity.pid, signal);
}

/** kill(2) without an error for a process, or a group, that has just ended. */
export function sendSignal(target: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    // EPERM: macOS answers so for a group whose only members are zombies.
    if (hasCode(error, 'ESRCH') || (target < 0 && hasCode(error, 'EPERM'))) return false;
    throw error;
  }
}

/**
 * Kills whatever a pod has left running: processes whose environment names the pod's UID, in whatever session or group. As
 * with a container, nothing of it survives its first process. Linux only; macOS does not show the environment of other
 * processes reliably, there a job's daemons that left the process group live on.
 */
export async function killLeftovers(uid: string): Promise<void> {
  if (process.platform !== 'linux') return;
  const marker = `\0${POD_UID_VARIABLE}=${uid}\0`;
  // Again until nothing is found: a process may fork while its siblings are being killed. Bounded, because one that hangs in
  // the kernel (state D) dies only when the kernel lets go of it.
  for (let round = 0; round < 20; round++) {
    let found = 0;
    for (const entry of await readdir('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      // Whatever cannot be read is not ours: gone meanwhile, another user's, the kernel's.
      const environment = await readFile(`/proc/${entry}/environ`, 'utf8').catch(() => undefined);
      if (environment === undefined || !`\0${environment}`.includes(marker)) continue;
      if (sendSignal(Number(entry), 'SIGKILL')) found++;
    }
    if (found === 0) return;
    await setTimeout(10);
  }
}

async function startTimesFromProc(pids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  // Start times count from boot: without the boot's id, one from before a reboot could match by chance.
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const found = await Promise.all(
    pids.map(async (pid) => {
      const ticks = parseProcStat(await readProc(`/proc/${pid}/stat`));
      return ticks === undefined ? [] : [[pid, `${boot}:${ticks}`] as const];
    }),
  );
  return new Map(found.flat());
}

/** Field 22 of proc_pid_stat(5), the start time; `undefined` for no process, a zombie or a dead one (field 3). */
export function parseProcStat(stat: string | undefined): string | undefined {
  if (stat === undefined) return undefined;
  // Field 2 is the command's name in parentheses; it may itself hold blanks and parentheses.
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
    // Gone, or ended while being read.
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
    // ps exits with 1 when none of the processes exists.
    if ((error as { code?: unknown }).code === 1) return new Map();
    throw error;
  }
}

/** Lines of `ps -o pid=,stat=,lstart=`, without zombies. */
export function parsePs(output: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const line of output.split('\n')) {
    const match = /^\s*(\d+)\s+(\S+)\s+(\S.*?)\s*$/.exec(line);
    if (match && !match[2]!.startsWith('Z')) found.set(Number(match[1]), match[3]!);
  }
  return found;
}
