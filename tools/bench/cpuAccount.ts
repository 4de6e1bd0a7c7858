/** Who used the processors while a benchmark ran: the figures of a machine that others use too mean little without it. */
import { readFile } from 'node:fs/promises';

/** Clock ticks of /proc: USER_HZ is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** CPU time that a process and all its threads have used so far, in seconds. @throws Error when it has ended */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name, in brackets, which may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** CPU time that everybody on this machine has used so far, in seconds. */
async function cpuSecondsOfAll(): Promise<number> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) / TICKS_PER_SECOND;
}

/** An account that was opened; closing it tells the cores that each of the named processes used on average, and that all others used. */
export class CpuAccount {
  readonly #pids: ReadonlyMap<string, number>;
  readonly #before: ReadonlyMap<string, number>;
  readonly #allBefore: number;
  readonly #openedAt = performance.now();

  private constructor(pids: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>, allBefore: number) {
    this.#pids = pids;
    this.#before = before;
    this.#allBefore = allBefore;
  }

  static async open(pids: ReadonlyMap<string, number>): Promise<CpuAccount> {
    return new CpuAccount(pids, await used(pids), await cpuSecondsOfAll());
  }

  async close(): Promise<Record<string, number>> {
    const seconds = (performance.now() - this.#openedAt) / 1_000;
    const all = (await cpuSecondsOfAll()) - this.#allBefore;
    const after = await used(this.#pids);
    const own = [...after].map(([name, value]): [string, number] => [name, value - (this.#before.get(name) ?? 0)]);
    const others = all - own.reduce((sum, [, value]) => sum + value, 0);
    return Object.fromEntries([...own, ['othersOnThisMachine', others] as const].map(([name, value]) => [name, Math.round((value / seconds) * 100) / 100]));
  }
}

async function used(pids: ReadonlyMap<string, number>): Promise<Map<string, number>> {
  return new Map(await Promise.all([...pids].map(async ([name, pid]): Promise<[string, number]> => [name, await cpuSecondsOf(pid)])));
}
