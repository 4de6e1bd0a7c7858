import { descendantProcesses } from './descendants.ts';
import { type KillScope, killScope } from './killScope.ts';
import {
  hasInEnvironment,
  type ProcessRow,
  readCommandLine,
  readName,
  readProcessTable,
} from './processTable.ts';

/** Interval between checks for running processes (ms). */
const CHECK_INTERVAL_MS = 20;
/**
 * Maximum of this interval during a grace period, which may be long (ms). Each check reads all of
 * /proc.
 */
const SELDOM_MS = 300;
/** Time after which processes that survive SIGKILL are reported (ms). */
const KILL_MS = 2000;

/**
 * Processes of the supervised command. They are found and killed in every session and process
 * group.
 */
export class CommandProcesses {
  readonly #scope: KillScope;
  /** NAME=value entry in the environment of everything that the supervisor starts. */
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

  /** Returns the running processes of the command. */
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

  /**
   * Returns the start times of the running processes in the command's process group, by process id.
   */
  group(): ReadonlyMap<number, number> {
    return new Map(
      readProcessTable()
        .filter(({ group, zombie }) => group === this.child && !zombie)
        .map(({ pid, startedAt }) => [pid, startedAt]),
    );
  }

  /** Whether a running process is left in the command's process group. */
  groupAlive(): boolean {
    try {
      if (this.child === undefined || !process.kill(-this.child, 0)) return false;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    }
    // The group has a member, but it may be a zombie that its parent has not reaped yet.
    return readProcessTable().some(({ group, zombie }) => group === this.child && !zombie);
  }

  /**
   * Sends SIGKILL to all processes, once. In a PID namespace of its own the kernel does this
   * atomically, so that no process can escape by forking.
   */
  killAll(): void {
    if (this.#scope.kind === 'namespace') return void sendSignal(-1, 'SIGKILL');
    for (const { pid } of this.alive()) sendSignal(pid, 'SIGKILL');
  }

  /**
   * Kills until no process is left that can be killed.
   *
   * @returns the ids of processes that do not end: those of another user, or stuck in the kernel
   */
  async sweep(): Promise<number[]> {
    if (this.alive().length === 0) {
      // A child that was killed but not reaped yet needs one turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      return [];
    }
    for (const endMs = performance.now() + KILL_MS; ;) {
      this.killAll();
      await new Promise((resolve) => setTimeout(resolve, CHECK_INTERVAL_MS));
      const remaining = this.alive();
      // Waiting does not end the processes of another user.
      if (performance.now() > endMs || !remaining.some(({ pid }) => sendSignal(pid, 0)))
        return this.alive().map(({ pid }) => pid);
    }
  }

  /**
   * Waits until no running process is left in the command's group.
   *
   * @param given - ends the wait when aborted
   * @returns whether the group is empty
   */
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

/**
 * Sends a signal, or none with 0. A process that has ended or belongs to another user is not an
 * error.
 *
 * @returns whether it was, or could have been, delivered to any process
 */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}
