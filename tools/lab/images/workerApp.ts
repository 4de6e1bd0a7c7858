import { execFile } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { addLibraries } from './rootfs.ts';

const run = promisify(execFile);

/** Sources of the worker in an image. */
export const WORKER_SOURCES = [
  'core',
  'workflows',
  'activities',
  'worker',
  'cli',
  'deploy/images/buildWorkflowBundles.ts',
  'tsconfig.json',
  'tsconfig.build.json',
  'package-lock.json',
];

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
}

/**
 * Compiles the worker into /app, installs its packages, and adds `holdfast` to the PATH, as
 * deploy/images/worker.Dockerfile does.
 * @param node - Node.js that runs the build
 */
export async function addWorker(root: string, project: string, node: string): Promise<void> {
  const app = join(root, 'app');
  await mkdir(app, { recursive: true });
  await run(
    node,
    [
      join(project, 'node_modules', 'typescript', 'bin', 'tsc'),
      '-p',
      'tsconfig.build.json',
      '--outDir',
      join(app, 'dist'),
      '--declaration',
      'false',
      '--sourceMap',
      'false',
    ],
    { cwd: project },
  );
  await copyFile(join(project, 'package.json'), join(app, 'package.json'));
  // The bundle needs all packages; the image then gets those of production.
  await symlink(join(project, 'node_modules'), join(app, 'node_modules'));
  await run(node, [join(project, 'deploy/images/buildWorkflowBundles.ts'), join(app, 'dist')]);
  await rm(join(app, 'node_modules'));
  const { packages } = JSON.parse(
    await readFile(join(project, 'package-lock.json'), 'utf8'),
  ) as Lock;
  const wanted = Object.entries(packages).flatMap(([path, { dev }]) =>
    path !== '' && dev !== true && existsSync(join(project, path)) ? [path] : [],
  );
  for (const path of wanted)
    await cp(join(project, path), join(app, path), {
      recursive: true,
      filter: (source) =>
        !isOther(source) && !source.slice(join(project, path).length).includes('/node_modules'),
    });
  await addNativeLibraries(root, project);

  const main = join(app, 'dist', 'cli', 'main.js');
  await chmod(main, 0o755);
  await mkdir(join(root, 'usr', 'local', 'bin'), { recursive: true });
  await mkdir(join(root, 'usr', 'bin'), { recursive: true });
  await symlink('/app/dist/cli/main.js', join(root, 'usr', 'local', 'bin', 'holdfast'));
  // The path in its first line (shebang).
  await symlink('/bin/busybox', join(root, 'usr', 'bin', 'env'));
  await mkdir(join(root, 'etc'), { recursive: true });
  await writeFile(join(root, 'etc', 'nsswitch.conf'), 'hosts: files dns\n');
}

const BRIDGE = join('node_modules', '@temporalio', 'core-bridge', 'releases');
/** As its folders are called: https://doc.rust-lang.org/rustc/platform-support.html */
const PLATFORM = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-unknown-linux-gnu`;

/** The SDK's native part for another platform: 30 MB each. */
const isOther = (path: string): boolean =>
  path.includes(`${BRIDGE}/`) && !path.includes(`${BRIDGE}/${PLATFORM}`);

async function addNativeLibraries(root: string, project: string): Promise<void> {
  await addLibraries(root, join(project, BRIDGE, PLATFORM, 'index.node'));
}
