import { readdirSync, readFileSync } from 'node:fs';

/** One process, as /proc/PID/stat shows it. */
export interface ProcessRow {
  readonly pid: number;
  readonly ppid: number;
  readonly group: number;
  readonly session: number;
  /** Dead but not reaped: nothing is left to signal. */
  readonly zombie: boolean;
  readonly nice: number;
  /** When it started (clock ticks since boot): what tells it from a later one with its number. */
  readonly startedAt: number;
}

/** @returns undefined when there is no such process (any more), or it is hidden from us */
export function readProcess(pid: number): ProcessRow | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name, in parentheses, may hold anything, parentheses included: the fields start after the last one.
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

/** Every process of this PID namespace. @throws Error when /proc is not mounted */
export function readProcessTable(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of readdirSync('/proc')) {
    const row = /^\d+$/.test(name) ? readProcess(Number(name)) : undefined;
    if (row !== undefined) rows.push(row);
  }
  return rows;
}

/** The process's arguments, or undefined when they cannot be read. */
export function readCommandLine(pid: number | 'self'): string[] | undefined {
  return readText(`/proc/${pid}/cmdline`)?.replace(/\0$/, '').split('\0');
}

/** The process's name: the file it executes, at most 15 characters. */
export function readName(pid: number): string | undefined {
  return readText(`/proc/${pid}/comm`)?.trimEnd();
}

/** Whether the process was started with this entry in its environment. Another user's processes hide theirs: false. */
export function hasInEnvironment(pid: number, entry: string): boolean {
  return readText(`/proc/${pid}/environ`)?.split('\0').includes(entry) ?? false;
}

/** Processes come and go between two looks, and some belong to others: what cannot be read is not there for us. */
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
