import type { ProcessRow } from './processTable.ts';

/** What makes a process one of ours. */
export interface ProcessTreeRoots {
  /** Its descendants are ours; itself and the supervisor are not. */
  readonly root: number;
  readonly supervisor: number;
  /** The command's process, leader of its own session and group; undefined while it has none. */
  readonly child: number | undefined;
  /** Whether a process carries our mark in its environment: finds those that made a session of their own and lost their parent. */
  readonly marked: (pid: number) => boolean;
}

/** The living processes of the command: its descendants, its session, all that carry our mark, and all that descend from any of these. */
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
