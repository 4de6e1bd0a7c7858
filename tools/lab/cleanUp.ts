import { execFile } from 'node:child_process';
import { lstat, readdir, readFile, readlink, rm, rmdir } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { removeCgroups } from './cgroups.ts';
import type { Component, Lab } from './component.ts';
import { cniNetworkName, runFolder } from './nodeFiles.ts';
import { removeBridge } from './podNetwork.ts';
import { acceptsConnections } from './probe.ts';
import { processStartTime, stopProcess } from './process.ts';
import { restoreSysctls } from './sysctls.ts';
import { BINARIES } from './versions.ts';

const OURS = new Set<string>([...Object.keys(BINARIES), 'containerd-shim-runc-v2']);

/**
 * Folders that kubelet, shim and CNI create outside of the lab's folders, inner ones first. They
 * are removed only if empty, because another node may use them.
 */
const FIXED_FOLDERS = [
  '/run/containerd/s',
  '/run/containerd',
  '/var/lib/kubelet/device-plugins',
  '/var/lib/kubelet',
  '/var/lib/cni/results',
  '/var/log/containers',
];

/**
 * Removes what a real node leaves outside of its processes: processes of pods, shims, mounts,
 * network namespaces, the bridge, cgroups and the run folder, also those of a crashed run. The
 * lab's components must be stopped.
 */
export async function cleanUp(lab: Lab): Promise<void> {
  if (process.platform !== 'linux') return;
  await killStrays(lab);
  if (process.getuid?.() !== 0) return; // then there never was a node
  await removeCgroups(lab.record);
  await killStrays(lab); // shims stay while their container lives
  await unmountAll([lab.dir, runFolder(lab)]);
  await removeBridge(lab.record);
  await rm(runFolder(lab), { recursive: true, force: true });
  await removeMatching('/var/lib/cni/results', (name) =>
    name.startsWith(`${cniNetworkName(lab)}-`),
  );
  // The kubelet puts links there whatever its folders are.
  await removeMatching('/var/log/containers', async (name) => {
    const target = await readlink(join('/var/log/containers', name)).catch(() => '');
    return target.startsWith(lab.dir + sep);
  });
  for (const folder of FIXED_FOLDERS) {
    await removeMatching(folder, async (name) => isAbandonedSocket(join(folder, name)));
    await removeIfEmpty(folder);
  }
  await restoreSysctls();
}

/**
 * Kills processes of the lab's programs whose command line contains this lab's folders. For
 * processes without a record.
 * @param component - kills the processes of this component only
 */
export async function killStrays(
  lab: Lab,
  component?: Pick<Component, 'binaries' | 'mark'>,
): Promise<void> {
  if (process.platform !== 'linux') return;
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const pid = Number(entry);
    const startTime = await processStartTime(pid);
    const args = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    const name = basename(args[0] ?? '');
    if (startTime === undefined || !OURS.has(name)) continue;
    if (
      component !== undefined &&
      (name !== component.binaries[0] ||
        (component.mark !== undefined && !args.includes(component.mark)))
    )
      continue;
    const ours = args
      .slice(1)
      .some((arg) => [lab.dir, runFolder(lab)].some((folder) => arg.includes(folder + sep)));
    if (!ours) continue;
    lab.progress(`killing a left-over ${name} (pid ${pid})`);
    await stopProcess({ pid, startTime }, 'SIGKILL', 5_000);
  }
}

/** Unmounts everything below these folders, the innermost first. */
async function unmountAll(folders: readonly string[]): Promise<void> {
  for (const point of mountsBelow(await readFile('/proc/self/mountinfo', 'utf8'), folders)) {
    await promisify(execFile)('umount', ['--lazy', point]);
  }
}

/**
 * Returns the mount points below folders from the text of /proc/self/mountinfo, the latest first.
 * They are in field 5, with octal escapes.
 */
export function mountsBelow(mountinfo: string, folders: readonly string[]): string[] {
  return mountinfo
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .map((point) =>
      point.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      ),
    )
    .filter((point) => folders.some((folder) => point === folder || point.startsWith(folder + sep)))
    .reverse();
}

async function removeMatching(
  folder: string,
  matches: (name: string) => boolean | Promise<boolean>,
): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (await matches(name)) await rm(join(folder, name), { force: true });
  }
}

async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code ?? '')) throw error;
  });
}

async function isAbandonedSocket(path: string): Promise<boolean> {
  const isSocket = await lstat(path).then((found) => found.isSocket(), () => false); // prettier-ignore
  return isSocket && !(await acceptsConnections({ path }));
}
