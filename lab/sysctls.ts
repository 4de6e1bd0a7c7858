import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Kernel settings that a kubelet changes machine-wide (pkg/kubelet/cm, setupKernelTunables). */
const TOUCHED = ['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops', 'kernel/keys/root_maxkeys', 'kernel/keys/root_maxbytes'];

/** What they are now, to be restored when the node is taken down. */
export async function readSysctls(): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const name of TOUCHED) {
    const value = await readFile(join('/proc/sys', name), 'utf8').catch(() => undefined);
    if (value !== undefined) values[name] = value.trim();
  }
  return values;
}

export async function restoreSysctls(values: Record<string, string>): Promise<void> {
  const now = await readSysctls();
  for (const [name, value] of Object.entries(values)) if (now[name] !== value) await writeFile(join('/proc/sys', name), value);
}
