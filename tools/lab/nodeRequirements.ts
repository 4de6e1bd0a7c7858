import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exists } from './kubernetesFiles.ts';
import { ComponentUnavailableError } from './options.ts';

/** Where Debian's and upstream's packages put the CNI plugins. */
const CNI_FOLDERS = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'];
const CAP_SYS_RESOURCE = 24n;

/** A program that a node needs, its Debian package, and the variable with another path to it. */
interface Program {
  readonly program: string;
  readonly package: string;
  readonly env?: string;
}

export const NODE_PROGRAMS: readonly Program[] = [
  { program: 'containerd', package: 'containerd', env: 'HOLDFAST_CONTAINERD_BIN' },
  { program: 'ctr', package: 'containerd', env: 'HOLDFAST_CTR_BIN' },
  { program: 'runc', package: 'runc', env: 'HOLDFAST_RUNC_BIN' },
  { program: 'iptables', package: 'iptables' },
  { program: 'ip', package: 'iproute2' },
  { program: 'openssl', package: 'openssl' },
  { program: 'mount', package: 'mount' },
  { program: 'busybox', package: 'busybox-static', env: 'HOLDFAST_BUSYBOX_BIN' },
  { program: 'tini', package: 'tini', env: 'HOLDFAST_TINI_BIN' },
];
export const CNI_PACKAGE = 'containernetworking-plugins';

/**
 * Checks that this machine can be a node. The error names everything that is missing, and one
 * command that installs it.
 * @throws ComponentUnavailableError with the fix
 */
export async function checkNodeRequirements(): Promise<void> {
  const refuse = (why: string): never => {
    throw new ComponentUnavailableError(
      'kubelet',
      `this machine cannot be a Kubernetes node: ${why}`,
    );
  };
  if (process.platform !== 'linux') refuse('it does not run Linux; use --nodes kwok');
  if (process.getuid?.() !== 0) refuse('the kubelet needs root; run as root, or use --nodes kwok');
  if (!(await exists('/sys/fs/cgroup'))) refuse('no cgroups at /sys/fs/cgroup');
  const missing = await missingPrograms();
  if (missing.length > 0)
    refuse(`${missing.map((each) => each.program).join(', ')} missing: ${installCommand(missing)}`);
}

/**
 * Returns the missing programs and CNI plugins.
 * @param has - whether a program is in the PATH
 */
export async function missingPrograms(
  has: (program: string) => Promise<boolean> = inPath,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Program[]> {
  const missing: Program[] = [];
  for (const each of NODE_PROGRAMS)
    if (!(each.env !== undefined && env[each.env]) && !(await has(each.program)))
      missing.push(each);
  if (
    !(await cniFolder().then(
      () => true,
      () => false,
    ))
  )
    missing.push({
      program: 'CNI plugins (bridge, host-local)',
      package: CNI_PACKAGE,
      env: 'HOLDFAST_CNI_BIN_DIR',
    });
  return missing;
}

/** One command for all of them. */
export function installCommand(missing: readonly Program[]): string {
  const named = missing.flatMap(({ env }) => env ?? []);
  return `apt-get install ${[...new Set(missing.map((each) => each.package))].join(' ')}${named.length === 0 ? '' : `, or set ${named.join(', ')}`}`;
}

/** The folder of the CNI plugins. @throws ComponentUnavailableError */
export async function cniFolder(): Promise<string> {
  const explicit = process.env['HOLDFAST_CNI_BIN_DIR'];
  for (const folder of explicit === undefined || explicit === '' ? CNI_FOLDERS : [explicit]) {
    if ((await exists(join(folder, 'bridge'))) && (await exists(join(folder, 'host-local'))))
      return folder;
  }
  throw new ComponentUnavailableError(
    'kubelet',
    `no CNI plugins (bridge, host-local) in ${explicit ?? CNI_FOLDERS.join(', ')}: apt-get install ${CNI_PACKAGE}, or set HOLDFAST_CNI_BIN_DIR`,
  );
}

/**
 * Whether this process can lower OOM scores. Otherwise runc cannot start a pod's sandbox, unless
 * containerd restricts the scores.
 */
export async function mayLowerOomScore(): Promise<boolean> {
  const status = await readFile('/proc/self/status', 'utf8');
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}

async function inPath(tool: string): Promise<boolean> {
  for (const folder of [
    ...(process.env['PATH'] ?? '').split(':'),
    '/usr/sbin',
    '/usr/bin',
    '/sbin',
    '/bin',
  ]) {
    if (await exists(join(folder, tool))) return true;
  }
  return false;
}
