import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

/**
 * Returns a process and all its descendants, children before parents, so that none is missed when a
 * parent ends first.
 */
function processTree(pid: number): number[] {
  const children = Map.groupBy(parents(), ([, parent]) => parent);
  const below = (parent: number): number[] =>
    (children.get(parent) ?? []).flatMap(([child]) => [...below(child), child]);
  return [...below(pid), pid];
}

/** Sends a signal to every process of a tree. Processes that have ended are ignored. */
export function signalTree(pid: number, signal: NodeJS.Signals): void {
  for (const member of processTree(pid)) {
    try {
      process.kill(member, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** [pid, parent's pid] of every process. */
function parents(): [number, number][] {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
      .trim()
      .split('\n');
    return lines.map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
  }
  const pairs: [number, number][] = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      // pid (command, which may hold anything) state ppid …
      pairs.push([Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])]);
    } catch (error) {
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
  return pairs;
}
