/** Which compiled files belong to which of the two packages, and what they import. */
import { posix } from 'node:path';
import { PLUGIN, PLUGIN_CODE } from './packages.ts';

/** Compiled files by their path in dist/. */
export type CompiledFiles = ReadonlyMap<string, string>;

/** The code of both packages. */
export interface CodeOfPackages {
  readonly plugin: CompiledFiles;
  /** Imports of the plugin's files are rewritten to subpaths of its package: there is one copy of them. */
  readonly command: CompiledFiles;
}

/** The module that code imports, in any form, between two other parts of the match. */
const IMPORTS = /((?:^|\s)(?:from|import)\s*\(?\s*['"]|import\(['"])([^'"\s]+)(['"])/gm;

/** Divides the compiled files: what the plugin's code imports is the plugin's, all else the command's. */
export function codeOfPackages(compiled: CompiledFiles): CodeOfPackages {
  const reached = new Set<string>();
  const open = [...compiled.keys()].filter((path) =>
    PLUGIN_CODE.some((code) => path === code || path.startsWith(`${code}/`)),
  );
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    const declarations = path.replace(/\.(c?)js$/, '.d.$1ts');
    if (compiled.has(declarations)) open.push(declarations);
    open.push(...relativeImports(path, compiled.get(path) ?? ''));
  }
  const of = (wanted: (path: string) => boolean): [string, string][] =>
    [...compiled].filter(([path]) => wanted(path));
  return {
    plugin: new Map(of((path) => reached.has(path))),
    command: new Map(
      // A command has no types for others.
      of((path) => !reached.has(path) && path.endsWith('js')).map(([path, code]) => [
        path,
        withPluginImports(path, code, reached),
      ]),
    ),
  };
}

/** Returns the names of the packages that code imports, sorted. */
export function importedPackages(files: CompiledFiles): string[] {
  const names = [...files.values()].flatMap((code) =>
    importsOf(code).flatMap((target) =>
      /^(\.|node:)/.test(target) ? [] : (/^(@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? []),
    ),
  );
  return [...new Set(names)].toSorted();
}

/** Returns what code imports, as it is written there. */
export function importsOf(code: string): string[] {
  // A sample in a comment imports nothing.
  const bare = code.replaceAll(/^\s*(\/\*\*|\*|\/\/).*$/gm, '');
  return [...bare.matchAll(IMPORTS)].map(([, , target = '']) => target);
}

function relativeImports(path: string, code: string): string[] {
  return importsOf(code)
    .filter((target) => target.startsWith('.'))
    .map((target) => posix.join(posix.dirname(path), target));
}

function withPluginImports(path: string, code: string, plugin: ReadonlySet<string>): string {
  return code.replaceAll(IMPORTS, (whole, before: string, target: string, after: string) => {
    const file = posix.join(posix.dirname(path), target);
    return target.startsWith('.') && plugin.has(file)
      ? `${before}${PLUGIN.name}/internal/${file}${after}`
      : whole;
  });
}
