import type { ProcessRow } from './processTable.ts';

/** Criteria that identify the processes of the command. */
export interface ProcessTreeRoots {
  /**
   * Process whose descendants belong to the command. The process itself and the supervisor do not.
   */
  readonly root: number;
  readonly supervisor: number;
  /** The command's process, leader of its own session and group; undefined while there is none. */
  readonly child: number | undefined;
  /**
   * Whether a process has the supervisor's marker in its environment. This finds processes that
   * created a session of their own and lost their parent.
   */
  readonly marked: (pid: number) => boolean;
}

/**
 * Returns the running processes of the command: its descendants, its session, all processes with
 * the marker, and all descendants of any of these.
 */
export function descendantProcesses(
  table: readonly ProcessRow[],
  ties: ProcessTreeRoots,
): ProcessRow[] {
  const children = new Map<number, ProcessRow[]>();
  for (const row of table) {
    const siblings = children.get(row.ppid);
    if (siblings === undefined) children.set(row.ppid, [row]);
    else siblings.push(row);
  }
  const found = new Set<ProcessRow>();
  const open: ProcessRow[] = [
    ...(children.get(ties.root) ?? []),
    ...(children.get(ties.supervisor) ?? []),
  ];
  const visit = (): void => {
    for (let row = open.pop(); row !== undefined; row = open.pop()) {
      if (found.has(row) || row.pid === ties.supervisor || row.pid === ties.root || row.pid === 1)
        continue;
      found.add(row);
      open.push(...(children.get(row.pid) ?? []));
    }
  };
  visit();
  for (const row of table) {
    if (!found.has(row) && row.pid > 1 && (row.session === ties.child || ties.marked(row.pid)))
      open.push(row);
    visit();
  }
  return [...found].filter((row) => !row.zombie);
}
