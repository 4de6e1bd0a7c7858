import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exists } from './kubernetesFiles.ts';
import { ComponentUnavailableError } from './options.ts';

/** Where Debian's and upstream's packages put the CNI plugins. */
const CNI_FOLDERS = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'];
const CAP_SYS_RESOURCE = 24n;

/** Checks that this machine can be a node. @throws ComponentUnavailableError with the fix */
export async function checkNodeRequirements(): Promise<void> {
  const refuse = (why: string): never => {
    throw new ComponentUnavailableError('kubelet', `this machine cannot be a Kubernetes node: ${why}`);
  };
  if (process.platform !== 'linux') refuse('it does not run Linux; use --nodes kwok');
  if (process.getuid?.() !== 0) refuse('the kubelet needs root; run as root, or use --nodes kwok');
  if (!(await exists('/sys/fs/cgroup'))) refuse('no cgroups at /sys/fs/cgroup');
  for (const [tool, fix] of [['ip', 'apt-get install iproute2'], ['openssl', 'apt-get install openssl'], ['mount', 'apt-get install mount']] as const) {
    if (!(await inPath(tool))) refuse(`${tool} is missing: ${fix}`);
  } // prettier-ignore
  await cniFolder();
}

/** The folder of the CNI plugins. @throws ComponentUnavailableError */
export async function cniFolder(): Promise<string> {
  const explicit = process.env['HOLDFAST_CNI_BIN_DIR'];
  for (const folder of explicit === undefined || explicit === '' ? CNI_FOLDERS : [explicit]) {
    if ((await exists(join(folder, 'bridge'))) && (await exists(join(folder, 'host-local')))) return folder;
  }
  throw new ComponentUnavailableError(
    'kubelet',
    `no CNI plugins (bridge, host-local) in ${explicit ?? CNI_FOLDERS.join(', ')}: apt-get install containernetworking-plugins, or set HOLDFAST_CNI_BIN_DIR`,
  );
}

/** Whether this process may lower OOM scores; without, runc cannot start a pod's sandbox unless containerd restricts them. */
export async function mayLowerOomScore(): Promise<boolean> {
  const status = await readFile('/proc/self/status', 'utf8');
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}

async function inPath(tool: string): Promise<boolean> {
  for (const folder of [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin']) {
    if (await exists(join(folder, tool))) return true;
  }
  return false;
}
