/** Divides the compiled files between the two packages by their imports. */
import { posix } from 'node:path';
import { PLUGIN, PLUGIN_CODE } from './packages.ts';

/** Compiled files by their path in dist/. */
export type CompiledFiles = ReadonlyMap<string, string>;

/** The code of both packages. */
export interface CodeOfPackages {
  readonly plugin: CompiledFiles;
  /**
   * Files of the command. Imports of the plugin's files are rewritten to subpaths of its package,
   * so that there is one copy.
   */
  readonly command: CompiledFiles;
}

/** Matches an import in any form: the text before the module, the module, and the text after it. */
const IMPORTS = /((?:^|\s)(?:from|import)\s*\(?\s*['"]|import\(['"])([^'"\s]+)(['"])/gm;

/**
 * Divides the compiled files: files that the plugin's code imports belong to the plugin, all others
 * to the command.
 */
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
      // The command has no type declarations, because nothing imports it.
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

/** Returns the modules that the code imports, as they are written. */
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
