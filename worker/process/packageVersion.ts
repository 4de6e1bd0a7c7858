import { readFileSync } from 'node:fs';

/** Names of the checkout and of the package that this file is published in. */
const NAMES: readonly string[] = ['holdfast', 'holdfast-cli'];

/** The package's version: two directories up in the sources, three up in dist/. */
export function packageVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const { name, version: found } = JSON.parse(
        readFileSync(new URL(path, import.meta.url), 'utf8'),
      ) as { name?: string; version?: string };
      if (name !== undefined && NAMES.includes(name) && found !== undefined) return found;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
