import { descendantProcesses } from './descendants.ts';
import { type KillScope, killScope } from './killScope.ts';
import {
  hasInEnvironment,
  type ProcessRow,
  readCommandLine,
  readName,
  readProcessTable,
} from './processTable.ts';

/** Time between two looks at what is still alive, in ms. */
const CHECK_INTERVAL_MS = 20;
/** The same during a grace, which may be long: every look reads all of /proc. */
const SELDOM_MS = 300;
/** How long SIGKILL may take to be obeyed before that is reported, in ms. */
const KILL_MS = 2000;

/** All processes of the supervised command, found and killed wherever they went. */
export class CommandProcesses {
  readonly #scope: KillScope;
  /** NAME=value in the environment of everything the supervisor starts. */
  readonly #markerEnv: string;
  child: number | undefined;

  constructor(mark: string, assumedDedicated: boolean) {
    this.#markerEnv = mark;
    this.#scope = killScope({
      ppid: process.ppid,
      parentName: readName(process.ppid),
      parentCommandLine: readCommandLine(process.ppid),
      ownCommandLine: readCommandLine('self'),
      assumedDedicated,
    });
  }

  get scope(): KillScope {
    return this.#scope;
  }

  /** Living processes of the command. */
  alive(): ProcessRow[] {
    const table = readProcessTable();
    if (this.#scope.kind === 'namespace')
      return table.filter(({ pid, zombie }) => pid !== 1 && pid !== process.pid && !zombie);
    const root = this.#scope.root === 'self' ? process.pid : this.#scope.root;
    return descendantProcesses(table, {
      root,
      supervisor: process.pid,
      child: this.child,
      marked: (pid) => hasInEnvironment(pid, this.#markerEnv),
    });
  }

  /** Returns when each living process of the command's process group started, by its id. */
  group(): ReadonlyMap<number, number> {
    return new Map(
      readProcessTable()
        .filter(({ group, zombie }) => group === this.child && !zombie)
        .map(({ pid, startedAt }) => [pid, startedAt]),
    );
  }

  /** Whether a living process is left in the command's process group. */
  groupAlive(): boolean {
    try {
      if (this.child === undefined || !process.kill(-this.child, 0)) return false;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    }
    // Somebody is there, if only a zombie that its parent has not reaped yet.
    return readProcessTable().some(({ group, zombie }) => group === this.child && !zombie);
  }

  /** SIGKILL to all of them, once. In a PID namespace of our own the kernel does it in one go: nothing can fork its way out. */
  killAll(): void {
    if (this.#scope.kind === 'namespace') return void sendSignal(-1, 'SIGKILL');
    for (const { pid } of this.alive()) sendSignal(pid, 'SIGKILL');
  }

  /** Kills until nothing is alive that can be killed. @returns the ids of those that would not die: another user's, or stuck in the kernel */
  async sweep(): Promise<number[]> {
    if (this.alive().length === 0) {
      await new Promise((resolve) => setImmediate(resolve)); // a child that was killed but is not reaped yet needs its turn
      return [];
    }
    for (const endMs = performance.now() + KILL_MS; ;) {
      this.killAll();
      await new Promise((resolve) => setTimeout(resolve, CHECK_INTERVAL_MS));
      const remaining = this.alive();
      // Waiting does not make another user's die.
      if (performance.now() > endMs || !remaining.some(({ pid }) => sendSignal(pid, 0)))
        return this.alive().map(({ pid }) => pid);
    }
  }

  /** Settles when no living process is left in the command's group; gives up when told. */
  async groupEmpty(given: AbortSignal): Promise<boolean> {
    for (
      let waitMs = CHECK_INTERVAL_MS;
      !given.aborted;
      waitMs = Math.min(waitMs * 1.5, SELDOM_MS)
    ) {
      if (!this.groupAlive()) return true;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
    return false;
  }
}

/** Sends a signal, or with 0 none; a process that has gone or is another user's is no error. @returns whether it was delivered, or could have been, to any */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}
