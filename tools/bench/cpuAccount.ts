/** CPU time of each process during a benchmark, also of processes that do not belong to it. */
import { readFile } from 'node:fs/promises';
import type { ComponentName } from '../lab/lab.ts';

/** Clock ticks of /proc: USER_HZ is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
/** Component of the lab whose child processes do the work. */
const FAMILY: ComponentName = 'postgres';

/**
 * Returns the CPU time of a process with all its threads (s).
 * @throws Error if it has ended
 */
export async function cpuSecondsOf(pid: number): Promise<number> {
  return (await readTimes(pid)).own;
}

/**
 * Returns the CPU time of a process and its children, ended ones included (s). PostgreSQL has a
 * process for each connection.
 */
export async function cpuSecondsOfFamily(pid: number): Promise<number> {
  const { own, ended } = await readTimes(pid);
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8'))
    .split(' ')
    .filter((child) => child !== '');
  const living = await Promise.all(
    children.map(async (child) => await cpuSecondsOf(Number(child)).catch(() => 0)),
  ); // a child may have ended in the meantime
  return living.reduce((sum, seconds) => sum + seconds, own + ended);
}

/** Returns CPU times of a process (s). `ended` is that of the ended children it has waited for. */
async function readTimes(pid: number): Promise<{ own: number; ended: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name, in brackets, which may contain blanks.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
  return {
    own: (user + system) / TICKS_PER_SECOND,
    ended: (endedUser + endedSystem) / TICKS_PER_SECOND,
  };
}

/** Returns the CPU time of all processes on this machine (s). */
async function cpuSecondsOfAll(): Promise<number> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / TICKS_PER_SECOND;
}

/** CPU time of named processes, and of all others together, since the account was opened. */
export class CpuAccount {
  readonly #pids: ReadonlyMap<string, number>;
  readonly #before: ReadonlyMap<string, number>;
  readonly #allBefore: number;
  readonly #openedAt = performance.now();

  private constructor(
    pids: ReadonlyMap<string, number>,
    before: ReadonlyMap<string, number>,
    allBefore: number,
  ) {
    this.#pids = pids;
    this.#before = before;
    this.#allBefore = allBefore;
  }

  /** Opens an account. */
  static async open(pids: ReadonlyMap<string, number>): Promise<CpuAccount> {
    return new CpuAccount(pids, await used(pids), await cpuSecondsOfAll());
  }

  /** Returns the mean number of cores that each process has used. */
  async close(): Promise<Record<string, number>> {
    return coresOf(await this.spent());
  }

  /** Returns the CPU times so far. */
  async spent(): Promise<CpuSpent> {
    const wallSeconds = (performance.now() - this.#openedAt) / 1_000;
    const all = (await cpuSecondsOfAll()) - this.#allBefore;
    const after = await used(this.#pids);
    const own = [...after].map(([name, value]): [string, number] => [
      name,
      value - (this.#before.get(name) ?? 0),
    ]);
    const others = all - own.reduce((sum, [, value]) => sum + value, 0);
    return {
      wallSeconds,
      cpuSeconds: Object.fromEntries([...own, ['othersOnThisMachine', others]]),
    };
  }
}

/** CPU times by process, and the wall time in which they were used (s). */
export interface CpuSpent {
  readonly wallSeconds: number;
  readonly cpuSeconds: Readonly<Record<string, number>>;
}

/** Returns the mean number of cores of each process. */
export function coresOf({ wallSeconds, cpuSeconds }: CpuSpent): Record<string, number> {
  return Object.fromEntries(
    Object.entries(cpuSeconds).map(([name, value]) => [
      name,
      Math.round((value / wallSeconds) * 100) / 100,
    ]),
  );
}

/**
 * Processes that run the workflows of runners, and those that run their pods. KWOK and its agent
 * simulate nodes and runners and belong to neither.
 */
const HOLDFAST = /^(worker\d*|temporal(-\w+)?|postgres)$/;
const KUBERNETES: ReadonlySet<string> = new Set([
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
]);

/**
 * Returns the CPU time of each job, without the CPU time of idle processes.
 * @returns `ms` of worker and Temporal, and `times`: `ms` as a multiple of the control plane's CPU
 */
export function cpuOfJobs(
  spent: CpuSpent,
  idle: CpuSpent,
  jobs: number,
): { ms: number; times: number } {
  const beyondIdle = (is: (name: string) => boolean): number =>
    Object.entries(spent.cpuSeconds).reduce(
      (sum, [name, value]) =>
        is(name)
          ? sum + value - ((idle.cpuSeconds[name] ?? 0) / idle.wallSeconds) * spent.wallSeconds
          : sum,
      0,
    );
  const holdfast = beyondIdle((name) => HOLDFAST.test(name));
  return {
    ms: Math.round((holdfast / jobs) * 1_000),
    times: Math.round((holdfast / beyondIdle((name) => KUBERNETES.has(name))) * 100) / 100,
  };
}

/** Returns the CPU time of each process for each job, without that of an idle process (ms). */
export function cpuMsByProcess(
  spent: CpuSpent,
  idle: CpuSpent,
  jobs: number,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(spent.cpuSeconds).map(([name, value]) => {
      const whenIdle = ((idle.cpuSeconds[name] ?? 0) / idle.wallSeconds) * spent.wallSeconds;
      return [name, Math.round(((value - whenIdle) / jobs) * 1_000)];
    }),
  );
}

async function used(pids: ReadonlyMap<string, number>): Promise<Map<string, number>> {
  return new Map(
    await Promise.all(
      [...pids].map(async ([name, pid]): Promise<[string, number]> => [
        name,
        await (name === FAMILY ? cpuSecondsOfFamily(pid) : cpuSecondsOf(pid)),
      ]),
    ),
  );
}
