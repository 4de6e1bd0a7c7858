import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmod,
  cp,
  mkdir,
  readdir,
  readFile,
  realpath,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeSupervisorFolder } from '../../../deploy/images/supervisorFolder.ts';
import { ComponentUnavailableError } from '../options.ts';
import { resolveBinary } from '../resolve.ts';
import type { ImageConfig } from './ociImage.ts';
import { addLibraries, addProgram } from './rootfs.ts';
import { addWorker, WORKER_SOURCES } from './workerApp.ts';

/** An image made of programs of this machine, because registries may be unreachable. */
export interface ImageDefinition {
  readonly reference: string;
  readonly config: ImageConfig;
  /**
   * Layers from the lowest to the highest. A layer of several images is built and imported once.
   */
  readonly layers: readonly LayerDefinition[];
}

export interface LayerDefinition {
  /** Changes whenever the content would. */
  fingerprint(): Promise<string>;
  /** Writes the layer's files into an empty folder, which becomes the image's root. */
  fill(root: string): Promise<void>;
}

const recipes = dirname(fileURLToPath(import.meta.url));
const project = join(recipes, '..', '..', '..');
const simulator = join(project, 'tools', 'simulator');
const supervisor = join(project, 'supervisor');

export const PAUSE_IMAGE = 'holdfast.test/pause:1';
export const BUSYBOX_IMAGE = 'holdfast.test/busybox:1';
/** The same with a non-root USER, as many images of CI have. */
export const NON_ROOT_IMAGE = 'holdfast.test/non-root:1';
export const RUNNER_IMAGE = 'holdfast.test/runner:1';
/** Image of Gitea's official runner; replaces docker.io/gitea/runner. */
export const GITEA_RUNNER_IMAGE = 'holdfast.test/gitea-runner:1';
/** Image from which pods copy the supervisor: `cp -R /opt/holdfast/. TARGET`. */
export const SUPERVISOR_IMAGE = 'holdfast.test/supervisor:1';
/** Repository of the worker's image, which is built as in deploy/images/worker.Dockerfile. */
export const WORKER_REPOSITORY = 'holdfast.test/worker';

const tini = (): string =>
  find(
    'tini',
    'HOLDFAST_TINI_BIN',
    ['/usr/bin/tini-static', '/usr/bin/tini', '/sbin/tini'],
    'apt-get install tini',
  );
const staticTini = (): string =>
  find(
    'tini-static',
    'HOLDFAST_TINI_STATIC_BIN',
    ['/usr/bin/tini-static', '/sbin/tini-static'],
    'apt-get install tini',
  );
const busybox = (): string =>
  find(
    'busybox',
    'HOLDFAST_BUSYBOX_BIN',
    ['/bin/busybox', '/usr/bin/busybox', '/sbin/busybox'],
    'apt-get install busybox-static',
  );
const bash = (): string =>
  find('bash', 'HOLDFAST_BASH_BIN', ['/bin/bash', '/usr/bin/bash'], 'apt-get install bash');
/**
 * Returns the Node.js of the lock file if it is installed, so that the runner uses the same version
 * everywhere.
 */
const node = (): string => {
  const pinned = join(project, 'node_modules', 'node', 'bin', 'node');
  return existsSync(pinned) ? pinned : process.execPath;
};

const busyboxLayer: LayerDefinition = {
  fingerprint: () => fingerprintOf([busybox()]),
  fill: addBusybox,
};
/** Also where the simulator's runner has its Node from: one copy of 100 MB is enough. */
const supervisorLayer: LayerDefinition = {
  fingerprint: () =>
    fingerprintOf(
      [staticTini(), node()],
      [
        supervisor,
        join(project, 'uploader'),
        join(project, 'activities', 'artifacts'),
        join(project, 'core', 'domain'),
        join(project, 'deploy', 'images'),
      ],
    ),
  fill: (root) =>
    makeSupervisorFolder(join(root, 'opt/holdfast'), { tini: staticTini(), node: node() }),
};

/** Not among the {@link IMAGES}, since only tests with Gitea need it. */
export const giteaRunnerImage: ImageDefinition = {
  reference: GITEA_RUNNER_IMAGE,
  config: { command: ['/bin/sh'], user: '1000' },
  layers: [
    busyboxLayer,
    {
      fingerprint: async () => await fingerprintOf([await resolveBinary('gitea-runner')]),
      async fill(root) {
        await addProgram(root, await resolveBinary('gitea-runner'), '/bin/gitea-runner');
      },
    },
  ],
};

export const IMAGES: readonly ImageDefinition[] = [
  {
    // Keeps the namespaces of a pod alive: ends on SIGTERM and reaps orphans.
    reference: PAUSE_IMAGE,
    config: { entrypoint: ['/sbin/tini', '--', '/bin/busybox', 'sleep', '2147483647'] },
    layers: [
      {
        fingerprint: () => fingerprintOf([tini(), busybox()]),
        async fill(root) {
          await addProgram(root, tini(), '/sbin/tini');
          await addProgram(root, busybox(), '/bin/busybox');
        },
      },
    ],
  },
  { reference: BUSYBOX_IMAGE, config: { command: ['/bin/sh'] }, layers: [busyboxLayer] },
  {
    reference: NON_ROOT_IMAGE,
    config: { command: ['/bin/sh'], user: '1001' },
    layers: [busyboxLayer],
  },
  {
    reference: SUPERVISOR_IMAGE,
    config: { command: ['/bin/sh'] },
    layers: [busyboxLayer, supervisorLayer],
  },
  {
    // The simulator's runner, which replaces ghcr.io/actions/actions-runner. It has the same shell.
    reference: RUNNER_IMAGE,
    config: {
      entrypoint: ['/sbin/tini', '--', 'node', '/opt/holdfast/simulator/runner.ts'],
      workingDir: '/opt/holdfast',
    },
    layers: [
      busyboxLayer,
      supervisorLayer,
      {
        fingerprint: () => fingerprintOf([tini(), bash(), node()], [simulator]),
        async fill(root) {
          await addProgram(root, tini(), '/sbin/tini');
          await addProgram(root, bash(), '/bin/bash');
          await addLibraries(root, node());
          await symlinkAt(root, 'usr/local/bin/node', '/opt/holdfast/node');
          await mkdir(join(root, 'opt/holdfast'), { recursive: true });
          if (existsSync(simulator))
            await cp(simulator, join(root, 'opt/holdfast/simulator'), { recursive: true });
          await writeFile(
            join(root, 'opt/holdfast/package.json'),
            JSON.stringify({ type: 'module' }),
          );
          // Where GitHub's image has the real ones.
          await mkdir(join(root, 'home/runner'), { recursive: true });
          await chmod(join(root, 'home/runner'), 0o777);
          for (const script of ['config.sh', 'run.sh'])
            await cp(join(simulator, 'runner', script), join(root, 'home/runner', script));
        },
      },
    ],
  },
];

const workerLayer: LayerDefinition = {
  fingerprint: () =>
    fingerprintOf(
      [node()],
      WORKER_SOURCES.map((source) => join(project, source)),
    ),
  fill: async (root) => {
    await addLibraries(root, node());
    await symlinkAt(root, 'usr/local/bin/node', '/opt/holdfast/node');
    await addWorker(root, project, node());
  },
};

/**
 * Returns the image of the worker. A node imports it only on request. All tags have the same
 * content.
 */
export const workerImage = (tag: string): ImageDefinition => ({
  reference: `${WORKER_REPOSITORY}:${tag}`,
  config: { command: ['node', 'dist/worker/main.js'], workingDir: '/app' },
  layers: [busyboxLayer, supervisorLayer, workerLayer],
});

/** Changes whenever the image would. */
export async function fingerprintOfImage({
  reference,
  config,
  layers,
}: ImageDefinition): Promise<string> {
  const parts = await Promise.all(layers.map((layer) => layer.fingerprint()));
  return createHash('sha256')
    .update(JSON.stringify([reference, config, ...parts]))
    .digest('hex');
}

async function addBusybox(root: string): Promise<void> {
  const program = busybox();
  await addProgram(root, program, '/bin/busybox');
  const { stdout } = await promisify(execFile)(program, ['--list']);
  for (const applet of stdout.split('\n').filter((line) => line !== '' && line !== 'busybox'))
    await symlink('/bin/busybox', join(root, 'bin', applet));
  for (const folder of ['etc', 'root', 'tmp', 'var/tmp', 'home/runner'])
    await mkdir(join(root, folder), { recursive: true });
  await chmod(join(root, 'tmp'), 0o1777);
  await chmod(join(root, 'home/runner'), 0o777);
  await writeFile(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nrunner:x:1001:1001:runner:/home/runner:/bin/sh\n',
  );
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nrunner:x:1001:\n');
}

async function symlinkAt(root: string, path: string, target: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await symlink(target, join(root, path));
}

function find(name: string, env: string, candidates: readonly string[], fix: string): string {
  const explicit = process.env[env];
  const found = (explicit === undefined || explicit === '' ? candidates : [explicit]).find((path) =>
    existsSync(path),
  );
  if (found === undefined)
    throw new ComponentUnavailableError(
      'kubelet',
      `${name}, needed for the images of the lab, is missing: ${fix}, or set ${env}`,
    );
  return found;
}

/**
 * Returns a hash of this folder's code, of programs and of folders. Programs count by size and
 * modification time: reading 100 MB on each `up` would take too long.
 */
async function fingerprintOf(
  programs: readonly string[],
  folders: readonly string[] = [],
): Promise<string> {
  const hash = createHash('sha256');
  for (const program of programs) {
    const { size, mtimeMs } = await stat(await realpath(program));
    hash.update(`${program} ${size} ${mtimeMs}\n`);
  }
  for (const folder of [recipes, ...folders]) hash.update(JSON.stringify(await treeFacts(folder)));
  return hash.digest('hex');
}

async function treeFacts(folder: string): Promise<string[]> {
  if ((await stat(folder).catch(() => undefined))?.isFile() === true)
    return [folder, await readFile(folder, 'utf8')];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const facts: string[] = [];
  for (const file of files.toSorted()) facts.push(file, await readFile(file, 'utf8'));
  return facts;
}
