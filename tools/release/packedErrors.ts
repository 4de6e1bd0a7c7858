/** Whether what npm would publish can run: everything that is exported, executed or imported is in it. */
import { posix } from 'node:path';

/** What a packed package consists of. */
export interface PackedPackage {
  /** Paths of its files, relative to its root. */
  readonly files: readonly string[];
  /** Reads one of its files. */
  readonly read: (path: string) => string;
}

/** Files that nothing imports: a Worker and an image read them by their paths. */
const READ_BY_PATH = [
  /^dist\/workflow-bundle-[\d.]+\.js$/,
  /^dist\/workflow-bundle-[\d.]+-encrypted\.js$/,
  /^dist\/workflows\/tracing\/interceptors\.js$/,
  /^dist\/worker\/codec\/failureConverter\.cjs$/,
  /^dist\/supervisor\/supervisor\.mjs$/,
];

/** Returns what is missing from a package, each with its fix. An empty list: the package can run. */
export function packedErrors({ files, read }: PackedPackage): string[] {
  const packed = new Set(files);
  const { bin = {}, exports = {} } = JSON.parse(read('package.json')) as {
    bin?: Record<string, string>;
    exports?: Record<string, string>;
  };
  const entries = [...Object.values(bin), ...Object.values(exports)].filter(
    (path) => !path.includes('*'),
  );
  const missing = new Set(
    entries.map((path) => posix.normalize(path)).filter((path) => !packed.has(path)),
  );
  for (const file of files.filter((path) => /^dist\/(?!workflow-bundle-).*\.js$/.test(path)))
    for (const target of relativeImports(read(file)))
      if (!packed.has(posix.join(posix.dirname(file), target)))
        missing.add(`${posix.join(posix.dirname(file), target)}, which ${file} imports`);
  for (const file of files.filter((path) => path.endsWith('.md')))
    for (const target of relativeLinks(read(file)))
      if (!exists(packed, posix.join(posix.dirname(file), target)))
        missing.add(`${posix.join(posix.dirname(file), target)}, to which ${file} links`);
  return [
    ...[...missing].map(String),
    ...READ_BY_PATH.filter((form) => !files.some((path) => form.test(path))).map(
      (form) => `a file that matches ${form.source}`,
    ),
  ].map((what) => `the package lacks ${what}; add it to "files" in package.json`);
}

/** The relative modules that compiled code imports, in any form. */
function relativeImports(code: string): string[] {
  return [...code.matchAll(/(?:^|\s)(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/gm)].flatMap(
    ([, path]) => path ?? [],
  );
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
