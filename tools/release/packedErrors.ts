/**
 * Checks whether the packages that npm would publish can run: they must contain everything that is
 * exported, executed or imported.
 */
import { posix } from 'node:path';
import { importedPackages, importsOf } from './codeOfPackages.ts';
import { PLUGIN } from './packages.ts';

/** A packed package. */
export interface PackedPackage {
  /** Paths of its files, relative to its root. */
  readonly files: readonly string[];
  /** Returns the content of one of its files. */
  readonly read: (path: string) => string;
}

interface Manifest {
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: object;
  readonly peerDependencies?: object;
}

/** Files of the plugin's package without an import: a Worker or an image reads them by path. */
const READ_BY_PATH = [
  /^dist\/activities\/compute\/process\/wrapper\.js$/,
  /^dist\/workflow-bundle-[\d.]+\.js$/,
  /^dist\/workflow-bundle-[\d.]+-encrypted\.js$/,
  /^dist\/workflows\/tracing\/interceptors\.js$/,
  /^dist\/worker\/codec\/failureConverter\.cjs$/,
  /^dist\/supervisor\/supervisor\.mjs$/,
];

/**
 * Returns what is missing from the packages, each with its fix. Empty if they can run.
 * @param plugin - the package whose files the command imports
 */
export function packedErrors(plugin: PackedPackage, command: PackedPackage): string[] {
  const readByPath = READ_BY_PATH.filter(
    (form) => !plugin.files.some((path) => form.test(path)),
  ).map((form) => `a file that matches ${form.source}`);
  const missing = {
    holdfast: [...missingFrom(plugin), ...readByPath],
    'holdfast-cli': [...missingFrom(command), ...missingInternals(plugin, command)],
  };
  return Object.entries(missing).flatMap(([name, list]) =>
    list.map((what) => `the package ${name} lacks ${what}; add it in tools/release/packages.ts`),
  );
}

/** Returns what is missing for the package's own code. */
function missingFrom({ files, read }: PackedPackage): string[] {
  const packed = new Set(files);
  const manifest = JSON.parse(read('package.json')) as Manifest;
  const { bin = {}, exports = {}, dependencies = {}, peerDependencies = {} } = manifest;
  const entries = [...Object.values(bin), ...Object.values(exports)].filter(
    (path) => !path.includes('*'),
  );
  const missing = new Set(
    entries.map((path) => posix.normalize(path)).filter((path) => !packed.has(path)),
  );
  const code = compiled(files);
  for (const file of code)
    for (const target of importsOf(read(file)).filter((each) => each.startsWith('.')))
      if (!packed.has(posix.join(posix.dirname(file), target)))
        missing.add(`${posix.join(posix.dirname(file), target)}, which ${file} imports`);
  for (const name of importedPackages(new Map(code.map((file) => [file, read(file)]))))
    if (!(name in dependencies) && !(name in peerDependencies))
      missing.add(`the dependency ${name}`);
  for (const file of files.filter((path) => path.endsWith('.md')))
    for (const target of relativeLinks(read(file)))
      if (!exists(packed, posix.join(posix.dirname(file), target)))
        missing.add(`${posix.join(posix.dirname(file), target)}, to which ${file} links`);
  return [...missing];
}

/** Returns files of the plugin that the command imports and the plugin lacks. */
function missingInternals(plugin: PackedPackage, command: PackedPackage): string[] {
  const prefix = `${PLUGIN.name}/internal/`;
  const targets = compiled(command.files).flatMap((file) =>
    importsOf(command.read(file)).filter((target) => target.startsWith(prefix)),
  );
  return [...new Set(targets)].filter(
    (target) => !plugin.files.includes(`dist/${target.slice(prefix.length)}`),
  );
}

function compiled(files: readonly string[]): string[] {
  return files.filter((path) => /^dist\/(?!workflow-bundle-).*\.c?js$/.test(path));
}

/** The relative links of a page, without their anchors. */
function relativeLinks(page: string): string[] {
  return [...page.matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)/g)].flatMap(([, path]) => path ?? []);
}

/** Whether a path is one of the files, or a folder of them. */
function exists(files: ReadonlySet<string>, path: string): boolean {
  const folder = path.endsWith('/') ? path : `${path}/`;
  return files.has(path) || [...files].some((file) => file.startsWith(folder));
}
