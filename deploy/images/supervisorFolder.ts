import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, realpath, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sharedLibraries } from './sharedLibraries.ts';

const run = promisify(execFile);
const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const TINI = ['/usr/bin/tini-static', '/sbin/tini-static'];

export interface SupervisorFolderParts {
  /** A statically linked tini. @default where Debian's package `tini` puts it */
  readonly tini?: string;
  /** A dynamically linked Node ≥ 22. @default the one that runs this */
  readonly node?: string;
}

/**
 * Makes the folder that runs the supervisor in any image, one without a C library included: tini, Node with its dynamic loader and
 * libraries, and the bundles of supervisor and uploader. It is started as
 * `tini -s -- ld.so --library-path lib node supervisor.mjs [options] -- COMMAND`, with absolute paths.
 * Only Linux, whose binaries these are.
 * @param folder is created; of what is there, only what is made again is replaced
 * @throws Error that says what is missing on this machine
 */
export async function makeSupervisorFolder(
  folder: string,
  parts: SupervisorFolderParts = {},
): Promise<void> {
  const tini = parts.tini ?? TINI.find((path) => existsSync(path));
  if (tini === undefined)
    throw new Error(`no static tini (${TINI.join(', ')}): apt-get install tini`);
  const node = await realpath(parts.node ?? process.execPath);
  const libraries = await sharedLibraries(node);
  const loader = libraries.find(isLoader);
  if (loader === undefined) throw new Error(`ldd names no dynamic loader for ${node}`);
  if ((await sharedLibraries(tini)).length > 0) throw new Error(`${tini} is not statically linked`);

  const lib = join(folder, 'lib');
  await rm(lib, { recursive: true, force: true });
  await mkdir(lib, { recursive: true });
  for (const each of [folder, lib]) await chmod(each, 0o755); // a container of any user runs it, whatever the umask here
  await bundleSupervisor(join(folder, 'supervisor.mjs'));
  await bundleUploader(join(folder, 'uploader.mjs'));
  for (const each of ['supervisor.mjs', 'uploader.mjs']) await chmod(join(folder, each), 0o644);
  await copyStripped(node, join(folder, 'node'));
  await copyProgram(tini, join(folder, 'tini'));
  await copyProgram(loader, join(folder, 'ld.so'));
  for (const library of libraries.filter((path) => !isLoader(path)))
    await copyProgram(library, join(lib, basename(library)));
}

/** Bundles the supervisor into one file that needs Node ≥ 22 and nothing else. */
export async function bundleSupervisor(file: string): Promise<void> {
  await bundle('supervisor', file);
}

/** Bundles the uploader in the same way: the same Node runs it, beside a step. */
export async function bundleUploader(file: string): Promise<void> {
  await bundle('uploader', file);
}

async function bundle(room: 'supervisor' | 'uploader', file: string): Promise<void> {
  const { build } = await import('esbuild'); // only where it is built: it is no dependency of the product
  const entry = join(PROJECT, room, 'main.ts');
  // Modules where a package has them: in CommonJS within a module nothing of Node's own can be required.
  await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    target: 'node22',
    format: 'esm',
    mainFields: ['module', 'main'],
    outfile: file,
    logLevel: 'warning',
  });
}

function isLoader(library: string): boolean {
  return /^ld(64)?[-.].*\.\d+$/.test(basename(library)); // ld-linux-x86-64.so.2, ld-linux-aarch64.so.1, ld-musl-x86_64.so.1, ld64.so.2
}

/** Without its symbols, which nothing here reads, Node is a seventh smaller. Where there is no `strip` it is copied as it is. */
async function copyStripped(program: string, target: string): Promise<void> {
  try {
    await run('strip', ['-o', target, program]);
    await chmod(target, 0o755);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await copyProgram(program, target);
  }
}

async function copyProgram(program: string, target: string): Promise<void> {
  await rm(target, { force: true }); // it may be running
  await copyFile(program, target);
  await chmod(target, 0o755);
}
