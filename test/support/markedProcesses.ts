import { readdirSync, readFileSync } from 'node:fs';

/** A process of this machine, in any container. */
export interface MarkedProcess {
  readonly pid: number;
  readonly command: string;
}

/**
 * Returns all live processes that were started with this variable (`NAME=value`) in their
 * environment.
 */
export function markedProcesses(mark: string): MarkedProcess[] {
  return processIds().flatMap((pid) =>
    read(`/proc/${pid}/environ`).split('\0').includes(mark)
      ? [{ pid, command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim() }]
      : [],
  );
}

const processIds = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}
