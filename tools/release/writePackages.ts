/** Writes the folders of the published packages from dist/: `npm run build:packages`. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { createCommand, runCommand } from '../shared/commandLine.ts';
import { codeOfPackages, type CompiledFiles } from './codeOfPackages.ts';
import { manifestsOf, type Checkout } from './manifests.ts';
import { COMMAND, PLUGIN, type PublishedPackage } from './packages.ts';

const CODE = ['core', 'workflows', 'activities', 'worker', 'cli'];

/**
 * Writes the packages' folders, `holdfast` and `holdfast-cli`.
 * @param project - folder of the checkout, which contains dist/
 * @param target - folder that will contain them; its present content is deleted
 */
export async function writePackages(project: string, target: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  const code = codeOfPackages(await compiledFiles(join(project, 'dist')));
  const manifests = manifestsOf(await checkout(project), code);
  const bundles = (await readdir(join(project, 'dist')))
    .filter((file) => /^workflow-bundle-.*\.js$/.test(file))
    .map((file) => `dist/${file}`);
  const plugin = { ...PLUGIN, files: [...PLUGIN.files, ...bundles] };
  await writePackage(project, target, plugin, code.plugin, manifests.plugin);
  await writePackage(project, target, COMMAND, code.command, manifests.command);
}

async function writePackage(
  project: string,
  target: string,
  { name, bin = {}, files }: PublishedPackage,
  code: CompiledFiles,
  manifest: object,
): Promise<void> {
  const folder = join(target, name);
  for (const file of files) {
    const { from, to } = typeof file === 'string' ? { from: file, to: file } : file;
    // Scripts of deploy/ need a checkout, and source maps name sources that are not published.
    const filter = (path: string): boolean => !/\.(ts|map)$/.test(path);
    await cp(join(project, from), join(folder, to), { recursive: true, filter });
  }
  for (const [path, text] of code) {
    await mkdir(dirname(join(folder, 'dist', path)), { recursive: true });
    await writeFile(
      join(folder, 'dist', path),
      text.replace(/\n?\/\/# sourceMappingURL=.*\n?$/, '\n'),
    );
  }
  for (const path of Object.values(bin)) await chmod(join(folder, path), 0o755);
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

async function compiledFiles(dist: string): Promise<CompiledFiles> {
  const files = new Map<string, string>();
  for (const folder of CODE)
    for (const file of await readdir(join(dist, folder), { recursive: true })) {
      const path = `${folder}/${file}`;
      if (/\.(c?js|d\.c?ts)$/.test(path)) files.set(path, await readFile(join(dist, path), 'utf8'));
    }
  return files;
}

async function checkout(project: string): Promise<Checkout> {
  const json = async (file: string): Promise<unknown> =>
    JSON.parse(await readFile(join(project, file), 'utf8'));
  const { packages } = (await json('package-lock.json')) as {
    packages: Record<string, { version: string }>;
  };
  const sdk = packages['node_modules/@temporalio/worker']?.version;
  if (sdk === undefined) throw new Error('package-lock.json: lacks @temporalio/worker');
  const manifest = (await json('package.json')) as Checkout['manifest'];
  return { manifest: { ...manifest, ...omitUndefined({ gitHead: await commitOf(project) }) }, sdk };
}

/** Returns the commit that is checked out, or `undefined` outside of a git repository. */
async function commitOf(project: string): Promise<string | undefined> {
  if (!existsSync(join(project, '.git'))) return undefined;
  const { stdout } = await promisify(execFile)('git', ['rev-parse', 'HEAD'], { cwd: project });
  return stdout.trim();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const project = fileURLToPath(new URL('../..', import.meta.url));
  await runCommand(
    createCommand(
      'node tools/release/writePackages.ts',
      'Writes the folders of the published packages into dist/packages, from the output of `npm run build`.',
    ).action(async () => await writePackages(project, join(project, 'dist/packages'))),
  );
}
