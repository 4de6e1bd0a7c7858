import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Kernel settings that a kubelet changes for the whole machine (kubernetes/kubernetes,
 * pkg/kubelet/cm, setupKernelTunables).
 */
const TOUCHED = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
];
/**
 * One file for all labs of this machine: a second lab would only find values that the first has
 * changed.
 */
const SAVED = '/run/holdfast-sysctls.json';

/** Saves the settings, unless another lab has saved them. */
export async function saveSysctls(): Promise<void> {
  const text = JSON.stringify(await read());
  await writeFile(SAVED, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

/**
 * Restores the settings after the last node of this machine's labs has ended, and its run folder
 * was removed.
 */
export async function restoreSysctls(): Promise<void> {
  if ((await readdir('/run')).some((name) => /^holdfast-[0-9a-f]{8}$/.test(name))) return;
  const text = await readFile(SAVED, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const now = await read();
  for (const [name, value] of Object.entries(JSON.parse(text) as Record<string, string>)) {
    if (now[name] !== value) await writeFile(join('/proc/sys', name), value);
  }
  await rm(SAVED, { force: true });
}

async function read(): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const name of TOUCHED) {
    const value = await readFile(join('/proc/sys', name), 'utf8').catch(() => undefined);
    if (value !== undefined) values[name] = value.trim();
  }
  return values;
}
