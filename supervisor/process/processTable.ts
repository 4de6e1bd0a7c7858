import { readdirSync, readFileSync } from 'node:fs';

/** Process, as shown by /proc/PID/stat. */
export interface ProcessRow {
  readonly pid: number;
  readonly ppid: number;
  readonly group: number;
  readonly session: number;
  /** Whether the process is dead but not reaped, so that there is nothing to signal. */
  readonly zombie: boolean;
  readonly nice: number;
  /**
   * Start of the process (clock ticks since boot). It distinguishes the process from a later one
   * with the same id.
   */
  readonly startedAt: number;
}

/**
 * Reads one process.
 *
 * @returns undefined if there is no such process any more, or it is hidden from us
 */
export function readProcess(pid: number): ProcessRow | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name, in parentheses, may contain anything, including parentheses. The fields start after
  // the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state = '', ppid, group, session] = fields;
  return {
    pid,
    ppid: Number(ppid),
    group: Number(group),
    session: Number(session),
    zombie: 'ZX'.includes(state),
    nice: Number(fields[16]),
    startedAt: Number(fields[19]),
  };
}

/**
 * Reads all processes of this PID namespace.
 *
 * @throws Error if /proc is not mounted
 */
export function readProcessTable(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of readdirSync('/proc')) {
    const row = /^\d+$/.test(name) ? readProcess(Number(name)) : undefined;
    if (row !== undefined) rows.push(row);
  }
  return rows;
}

/** Returns the arguments of the process, or undefined if they cannot be read. */
export function readCommandLine(pid: number | 'self'): string[] | undefined {
  return readText(`/proc/${pid}/cmdline`)?.replace(/\0$/, '').split('\0');
}

/** Returns the name of the process: the file that it executes, at most 15 characters. */
export function readName(pid: number): string | undefined {
  return readText(`/proc/${pid}/comm`)?.trimEnd();
}

/**
 * Whether the process was started with this entry in its environment. False for processes of
 * another user, whose environment is hidden.
 */
export function hasInEnvironment(pid: number, entry: string): boolean {
  return readText(`/proc/${pid}/environ`)?.split('\0').includes(entry) ?? false;
}

/**
 * Reads a file. Processes start and end between two reads, and some belong to other users: what
 * cannot be read counts as missing.
 */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (
      ['ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'ENOTDIR'].includes(
        (error as NodeJS.ErrnoException).code ?? '',
      )
    )
      return undefined;
    throw error;
  }
}
