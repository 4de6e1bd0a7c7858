import { access, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LabRecord } from './component.ts';
import { waitFor } from './process.ts';

const ROOT = '/sys/fs/cgroup';

/**
 * Returns the cgroup of all pods of this lab, so that cleanup does not affect another kubelet on
 * this machine.
 */
export const cgroupName = (record: Pick<LabRecord, 'id'>): string => `holdfast-${record.id}`;

/** Version 2 is one tree; version 1 (and hybrid) one tree per controller. */
async function trees(): Promise<string[]> {
  const unified = await access(join(ROOT, 'cgroup.controllers')).then(() => true, () => false); // prettier-ignore
  if (unified) return [ROOT];
  const entries = await readdir(ROOT, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(ROOT, entry.name));
}

/** Creates the lab's cgroup in every hierarchy: the kubelet requires its root to exist. */
export async function createCgroups(record: Pick<LabRecord, 'id'>): Promise<void> {
  for (const tree of await trees()) {
    const path = join(tree, cgroupName(record));
    await mkdir(path, { recursive: true });
    // A cpuset (version 1) starts empty, and no process can enter an empty one.
    for (const file of ['cpuset.mems', 'cpuset.cpus']) {
      const parent = await readFile(join(tree, file), 'utf8').catch(() => undefined);
      if (parent !== undefined && !tree.endsWith('/unified') && tree !== ROOT)
        await writeFile(join(path, file), parent.trim());
    }
  }
}

/** Kills every process in the lab's cgroups, then removes them. */
export async function removeCgroups(record: Pick<LabRecord, 'id'>): Promise<void> {
  const emptied = await waitFor(async () => {
    let left = 0;
    for (const tree of await trees().catch(() => []))
      left += await killAndRemove(join(tree, cgroupName(record)));
    return left === 0;
  }, 20_000);
  if (!emptied)
    throw new Error(`cgroup ${cgroupName(record)} cannot be removed: a process in it does not die`);
}

/** @returns how many folders could not be removed yet */
async function killAndRemove(path: string): Promise<number> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return 0;
  let left = 0;
  for (const entry of entries)
    if (entry.isDirectory()) left += await killAndRemove(join(path, entry.name));
  const processes = await readFile(join(path, 'cgroup.procs'), 'utf8').catch(() => '');
  for (const pid of processes.split('\n').filter((line) => line !== '' && line !== '0'))
    kill(Number(pid));
  try {
    await rmdir(path);
    return left;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return left;
    return left + 1;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
